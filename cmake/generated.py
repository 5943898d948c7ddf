"""Generated headers: written only when they change, so that nothing is rebuilt in vain."""
import pathlib


def write_if_changed(name: str, text: str) -> None:
    """Makes the file what the text says, and its folder where there is none."""
    output = pathlib.Path(name)
    if not output.is_file() or output.read_text(encoding="utf-8") != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
