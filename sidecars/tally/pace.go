package main

import "time"

// paceCatchUp bounds the rows that are made up for after a time without credit: those of one second.
const paceCatchUp = time.Second

// pace says how many rows are due at a rate.
type pace struct {
	rate  float64
	start time.Time
	sent  int64
}

// newPace makes a pace of rate rows per second from now; 0 is no limit.
func newPace(rate float64, now time.Time) *pace {
	return &pace{rate: rate, start: now}
}

// due returns how many rows, at most most, may be sent now, and otherwise how long to wait for the next one.
func (p *pace) due(now time.Time, most int64) (rows int64, wait time.Duration) {
	if p.rate == 0 {
		return most, 0
	}
	behind := now.Sub(p.start) - p.timeOf(p.sent)
	if behind > paceCatchUp {
		p.start = p.start.Add(behind - paceCatchUp)
	}
	if behind < 0 {
		return 0, -behind
	}
	// The first row is due at once, so one more than the time that has passed says.
	rows = min(most, int64(now.Sub(p.start).Seconds()*p.rate)+1-p.sent)
	if rows < 1 {
		rows = 1
	}
	p.sent += rows
	return rows, 0
}

func (p *pace) timeOf(rows int64) time.Duration {
	return time.Duration(float64(rows) / p.rate * float64(time.Second))
}
