// Server-sent events from a byte stream, as in the HTML standard. Owns the line rules and nothing of what events mean.

export interface ServerSentEvent {
  /** The last `id` seen so far, this event's own included. */
  id: string;
  event: string;
  /** Absent when the block had no `data`: an id alone, which only moves the position. */
  data: string | undefined;
}

/** Longer lines or events than this are not the gate's. */
const MAX_EVENT = 32 * 1024 * 1024;

/** `onActivity` is called for every piece that arrives, comments too. */
export async function* readServerSentEvents(
  stream: ReadableStream<Uint8Array>,
  onActivity: () => void = () => {},
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let id = "";
  let event = "";
  let data: string[] = [];
  let size = 0;
  let touched = false;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return; // A block that was not finished by a blank line is dropped, as the standard says.
      onActivity();
      text += decoder.decode(value, { stream: true });
      let start = 0;
      for (;;) {
        const end = endOfLine(text, start);
        if (end === undefined) break;
        const line = text.slice(start, end.at);
        start = end.next;
        if (line === "") {
          if (touched) {
            yield { id, event: event || "message", data: data.length > 0 ? data.join("\n") : undefined };
          }
          event = "";
          data = [];
          size = 0;
          touched = false;
          continue;
        }
        if (line.startsWith(":")) continue;
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        let rest = colon < 0 ? "" : line.slice(colon + 1);
        if (rest.startsWith(" ")) rest = rest.slice(1);
        size += line.length;
        if (field === "data") data.push(rest);
        else if (field === "event") event = rest;
        else if (field === "id" && !rest.includes("\0")) id = rest;
        else continue;
        touched = true;
      }
      text = text.slice(start);
      if (size + text.length > MAX_EVENT) throw new Error("an event is longer than any of the gate's");
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** A line ends at LF, CR or CRLF. A CR at the very end of what is there may be half of a CRLF: wait for more. */
function endOfLine(text: string, start: number): { at: number; next: number } | undefined {
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 10) return { at, next: at + 1 };
    if (code === 13) {
      if (at + 1 >= text.length) return undefined;
      return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
    }
  }
  return undefined;
}
