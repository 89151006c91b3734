import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { type Answer, type Ask, type Field, pattern } from './ask.ts'

/** node:http2 as a client. */
export async function http2Client(base: string, ca: string) {
  const session = connect(base, { ca, maxSessionMemory: 100 }) // the default rejects answers while 10 MB wait to be sent
  await once(session, 'connect')
  return {
    send: (asks: readonly Ask[]) => Promise.all(asks.map((one) => send(session, one))),
    end: () => session.destroy(),
  }
}

async function send(session: ClientHttp2Session, one: Ask): Promise<Answer> {
  const headers: Record<string, string | string[]> = { ':method': one.method, ':path': one.path }
  for (const [name, value] of one.headers) headers[name] = [...(headers[name] ?? []), value]
  if (one.upload !== null && !one.isStreamed) headers['content-length'] = `${one.upload}`
  const stream = session.request(headers, { endStream: one.upload === null, waitForTrailers: true })
  const answer = { status: 0, headers: [] as Field[], trailers: [] as Field[], length: 0, error: '' }
  stream.on('error', ({ message }) => {
    answer.error = message
  })
  stream.on('response', (head, _flags, raw) => {
    answer.status = head[':status']!
    answer.headers = pairs(raw)
  })
  stream.on('trailers', (_head, _flags, raw) => {
    answer.trailers = pairs(raw)
  })
  stream.on('wantTrailers', () => stream.sendTrailers(Object.fromEntries(one.trailers)))
  if (headers['expect'] !== undefined) await once(stream, 'continue')
  if (one.upload !== null) stream.end(pattern(one.upload))
  const hash = createHash('sha256')
  stream.on('data', async (bytes: Buffer) => {
    answer.length += bytes.length
    hash.update(bytes)
    if (one.isCut) stream.close(8)
    else if (one.ack !== null) session.request({ ':path': one.ack }).resume()
  })
  await once(stream, 'close')
  return { ...answer, sha256: hash.digest('hex') }
}

function pairs(raw: readonly string[]): Field[] {
  return raw.flatMap((name, i): Field[] =>
    i % 2 === 0 && !name.startsWith(':') ? [[name, raw[i + 1]!]] : [],
  )
}
