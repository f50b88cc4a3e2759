"""A transformation, row by row: shouts, and leaves silence out."""

from wherry.sdk import Config, Record, RecordRejectedError, Transform, key, serve


class ShoutConfig(Config):
    times: int = key(default=1, min=1, max=9, doc="How many exclamation marks.")


class Shout(Transform[ShoutConfig]):
    """Shouts texts; refuses what is none."""

    class_name, aliases, version = "wherry.example.Shout", ("Shout",), "0.1.0"

    def transform_record(self, record: Record) -> Record | None:
        if not isinstance(record.value, str):
            raise RecordRejectedError("Only texts can be shouted.", reason="NO_TEXT")
        record.value = record.value.upper() + "!" * self.config.times
        return record if record.value.strip("! ") else None


if __name__ == "__main__":
    serve(Shout)
