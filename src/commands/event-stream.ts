import { EventStreamReader } from '../wire/event-stream.ts'

/** Yields the `data` of each event of an event stream. Throws if one is longer than allowed. */
export async function* eventsIn(
  stream: AsyncIterable<Uint8Array>,
  lengthMax: number,
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  const reader = new EventStreamReader(lengthMax)
  for await (const chunk of stream) {
    const events = reader.read(decoder.decode(chunk, { stream: true }))
    if (events === null) throw new Error('an event is too long')
    for (const { data } of events) yield data
  }
}
