// The data of server-sent events, as they arrive in whatever pieces.
//
// Not EventSource: it neither posts nor sends a key.
import { createParser } from 'eventsource-parser';

export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let ready: string[] = [];
  const parser = createParser({ onEvent: (event) => ready.push(event.data) });
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      parser.feed(done ? decoder.decode() : decoder.decode(value, { stream: true }));
      const events = ready;
      ready = [];
      yield* events;
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined); // who stops reading wants no more of it
  }
}
