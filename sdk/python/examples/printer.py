"""A sink, row by row: prints."""

from wherry.sdk import Config, Record, RecordRejectedError, Sink, key, serve


class PrinterConfig(Config):
    prefix: str = key(default="", doc="Text before every row.")


class Printer(Sink[PrinterConfig]):
    """Prints rows; refuses nulls."""

    class_name, aliases, version = "wherry.example.PrinterSink", ("Printer",), "0.1.0"

    def write_record(self, record: Record) -> None:
        if record.value is None:
            raise RecordRejectedError("A null can't be printed.", reason="NULL_VALUE")
        print(self.config.prefix, record.value, flush=True)


if __name__ == "__main__":
    serve(Printer)
