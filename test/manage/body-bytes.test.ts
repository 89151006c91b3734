import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { readBytes } from '../../src/manage/http/body-bytes.ts'

const HEAD = 'POST / HTTP/1.1\r\nHost: here\r\n'
const BYTES_MAX = 100
const READING = 'reading'

test('a body that has come with the head is there at once, and the next request is read as well', async (t) => {
  const body = 'x'.repeat(BYTES_MAX)
  const asked = `${HEAD}Content-Length: ${BYTES_MAX}\r\n\r\n${body}`
  const { socket } = await asking(t, async (request) => {
    await null
    const bytes = readBytes(request, BYTES_MAX)
    assert.ok(!(bytes instanceof Promise))
    return String(bytes)
  })
  socket.end(asked + asked + asked.replace('\r\n', '\r\nConnection: close\r\n'))
  assert.equal((await text(socket)).split(body).length, 4)
})

for (const [name, head, parts] of [
  ['in parts', 'Content-Length: 6', ['abc', 'def']],
  ['in chunks', 'Transfer-Encoding: chunked', ['3\r\nabc\r\n3\r\nde', 'f\r\n0\r\n\r\n']],
] as const)
  test(`a body that comes ${name} is waited for`, async (t) => {
    const { socket, heard } = await asking(t, async (request) => String(await readBytes(request, BYTES_MAX)))
    socket.write(`${HEAD}Connection: close\r\n${head}\r\n\r\n${parts[0]}`)
    await heard(READING)
    socket.write(parts[1])
    assert.match(await text(socket), /\r\n\r\nabcdef$/)
  })

test('what is too long is refused, whether it is there or comes', async (t) => {
  const long = 'x'.repeat(BYTES_MAX + 1)
  for (const parts of [[long], [long.slice(1), 'x']]) {
    const { socket, heard } = await asking(t, async (request) => refusalOf(request))
    socket.write(`${HEAD}Connection: close\r\nContent-Length: ${long.length}\r\n\r\n${parts[0]}`)
    await heard(READING)
    if (parts[1] !== undefined) socket.write(parts[1])
    assert.match(await text(socket), /\r\n\r\ntoo_large$/)
  }
})

test('whoever has gone before his body is asked for is not waited for', async (t) => {
  const refused = Promise.withResolvers<string>()
  const { socket, heard } = await asking(t, async (request) => {
    await new Promise((resolve) => request.once('close', resolve))
    refused.resolve(await refusalOf(request))
    return ''
  })
  socket.write(`${HEAD}Content-Length: 6\r\n\r\nabc`)
  await heard(READING)
  socket.destroy()
  assert.equal(await refused.promise, 'invalid_request')
})

async function refusalOf(request: IncomingMessage): Promise<string> {
  try {
    return `none, but ${await readBytes(request, BYTES_MAX)}`
  } catch (error) {
    return (error as { code: string }).code
  }
}

/** A connection to a server that answers with what `read` makes of a request; `heard`: once it has begun to. */
async function asking(
  t: Test,
  read: (request: IncomingMessage) => Promise<string>,
): Promise<{ socket: Socket; heard: (what: string) => Promise<unknown> }> {
  const server = createServer(async (request, response) => {
    server.emit(READING)
    response.end(await read(request))
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const heard = (what: string) => once(server, what)
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  return { socket, heard }
}
