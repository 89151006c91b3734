import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'

/** An HTTP/1.1 answer, read by hand. */
export interface RawAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** Sends these bytes as they are, and gives everything that comes until the other side closes. */
export async function said(url: string, bytes: string | Buffer): Promise<readonly RawAnswer[]> {
  const socket = await dialled(url)
  socket.write(bytes)
  return answersIn(await text(socket).catch(() => ''))
}

export async function dialled(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  return socket
}

/** Answers with a Content-Length or without a body, one after the other; those of 1xx too. */
export function answersIn(given: string): readonly RawAnswer[] {
  const answers: RawAnswer[] = []
  for (let rest = given; rest.startsWith('HTTP/1.1 '); ) {
    const end = rest.indexOf('\r\n\r\n')
    const [line = '', ...fields] = rest.slice(0, end).split('\r\n')
    const headers = new Map(fields.map((field) => fieldOf(field)))
    const length = Number(headers.get('content-length') ?? 0)
    answers.push({ status: Number(line.split(' ')[1]), headers, body: rest.slice(end + 4, end + 4 + length) })
    rest = rest.slice(end + 4 + length)
  }
  return answers
}

function fieldOf(line: string): readonly [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}
