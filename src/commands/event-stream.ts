/** What the events of an event stream have in `data`, one after the other. Throws at one that is longer than it may be. */
export async function* eventsIn(
  stream: AsyncIterable<Uint8Array>,
  lengthMax: number,
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let held = ''
  let data: string[] = []
  for await (const chunk of stream) {
    held += decoder.decode(chunk, { stream: true })
    const found = held.split(/\r\n|\n|\r(?!$)/)
    held = found.pop()!
    for (const line of found) {
      if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
      if (line !== '' || data.length === 0) continue
      yield data.join('\n')
      data = []
    }
    if (held.length + data.reduce((sum, { length }) => sum + length, 0) > lengthMax)
      throw new Error('an event is too long')
  }
}
