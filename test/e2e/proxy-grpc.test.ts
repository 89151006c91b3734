import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  type CallOptions,
  Client,
  credentials,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import { type Test, test } from 'tap'
import { startGatehouse } from './gatehouse.ts'

/** Bytes are the messages: no proto files. */
const METHODS = {
  echo: method('/test.Service/Echo'),
  count: method('/test.Service/Count', true, false),
  list: method('/test.Service/List', false, true),
  talk: method('/test.Service/Talk', true, true),
  fail: method('/test.Service/Fail'),
  hang: method('/test.Service/Hang'),
}

/** gRPC as its own library speaks it, from a client over TLS through the proxy to a server of h2c. */
test('gRPC: calls of every kind, with metadata, trailers and errors', async (t) => {
  const { client, server } = await startGrpc(t)

  t.test('one message each way, and metadata both ways', async () => {
    const metadata = new Metadata()
    metadata.add('x-text', 'one')
    metadata.add('x-text', 'two')
    metadata.add('x-bytes-bin', Buffer.from([0, 255, 10, 13]))
    const answer = await unary(client, METHODS.echo, Buffer.from('hello'), metadata)
    assert.equal(answer.message.toString(), 'hello')
    assert.deepEqual(answer.header.get('x-text'), ['one, two'])
    assert.deepEqual(answer.header.get('x-bytes-bin'), [Buffer.from([0, 255, 10, 13])])
    assert.deepEqual(answer.trailer.get('x-trailer'), ['at the end'])
    assert.deepEqual(answer.trailer.get('x-trailer-bin'), [Buffer.from([1, 2, 3])])
    assert.match(String(answer.header.get('x-seen-ja4')[0]), /^t13d/)
  })

  t.test('large messages', async () => {
    const message = randomBytes(3_500_000)
    const answer = await unary(client, METHODS.echo, message)
    assert.ok(answer.message.equals(message))
  })

  t.test('many messages from the client', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    const call = client.makeClientStreamRequest(
      METHODS.count.path,
      asIs,
      asIs,
      (error: ServiceError | null, message?: Buffer) => (error === null ? resolve(message!) : reject(error)),
    )
    for (let i = 0; i < 500; i++) call.write(Buffer.alloc(i))
    call.end()
    assert.equal((await promise).toString(), `500 messages, ${(499 * 500) / 2} bytes`)
  })

  t.test('many messages from the server', async () => {
    const call = client.makeServerStreamRequest(METHODS.list.path, asIs, asIs, Buffer.from('500'))
    const lengths: number[] = []
    for await (const message of call) lengths.push((message as Buffer).length)
    assert.deepEqual(
      lengths,
      Array.from({ length: 500 }, (_, i) => i),
    )
  })

  t.test('messages by turns: none waits for another', async () => {
    const call = client.makeBidiStreamRequest(METHODS.talk.path, asIs, asIs)
    for (let i = 0; i < 100; i++) {
      call.write(Buffer.from(`turn ${i}`))
      const [answer] = (await once(call, 'data')) as [Buffer]
      assert.equal(answer.toString(), `turn ${i}`)
    }
    call.end()
    const [{ code }] = (await once(call, 'status')) as [{ code: number }]
    assert.equal(code, status.OK)
  })

  t.test('an error is the trailers of an answer without a body', async () => {
    const error = await failing(unary(client, METHODS.fail, Buffer.from('no such thing')))
    assert.deepEqual([error.code, error.details], [status.NOT_FOUND, 'no such thing: ünïcode\n'])
    assert.deepEqual(error.metadata.get('x-why'), ['because'])
    const unknown = await failing(unary(client, method('/test.Service/Unknown'), Buffer.alloc(0)))
    assert.equal(unknown.code, status.UNIMPLEMENTED)
  })

  t.test('a deadline that passes, and a call taken back, end it at the server', async () => {
    const late = await failing(
      unary(client, METHODS.hang, Buffer.alloc(0), new Metadata(), { deadline: Date.now() + 2000 }),
    )
    assert.equal(late.code, status.DEADLINE_EXCEEDED)
    const call = client.makeBidiStreamRequest(METHODS.talk.path, asIs, asIs)
    call.on('error', () => undefined)
    call.write(Buffer.from('a'))
    await once(call, 'data')
    call.cancel()
    while (server.cancelled < 2) await server.cancellation()
  })
})

interface GrpcServer {
  /** Calls that the client let go of. */
  readonly cancelled: number
  /** The next one. */
  cancellation(): Promise<void>
}

async function startGrpc(t: Test): Promise<{ client: Client; server: GrpcServer }> {
  const server = new Server()
  let cancelled = 0
  let next = Promise.withResolvers<void>()
  const seen = {
    get cancelled() {
      return cancelled
    },
    cancellation: () => next.promise,
  }
  const cancel = (): void => {
    cancelled++
    next.resolve()
    next = Promise.withResolvers()
  }
  server.addService(METHODS, {
    echo(call: Unary, done: Done) {
      const header = new Metadata()
      header.set('x-text', call.metadata.get('x-text').join(', '))
      for (const value of call.metadata.get('x-bytes-bin')) header.add('x-bytes-bin', value)
      header.set('x-seen-ja4', String(call.metadata.get('x-ja4-fingerprint')[0]))
      call.sendMetadata(header)
      const trailer = new Metadata()
      trailer.set('x-trailer', 'at the end')
      trailer.set('x-trailer-bin', Buffer.from([1, 2, 3]))
      done(null, call.request, trailer)
    },
    count(call: ServerReadableStream<Buffer, Buffer>, done: Done) {
      let messages = 0
      let bytes = 0
      call.on('data', (message: Buffer) => {
        messages++
        bytes += message.length
      })
      call.on('end', () => done(null, Buffer.from(`${messages} messages, ${bytes} bytes`)))
    },
    list(call: ServerWritableStream<Buffer, Buffer>) {
      for (let i = 0; i < Number(call.request.toString()); i++) call.write(Buffer.alloc(i))
      call.end()
    },
    talk(call: ServerDuplexStream<Buffer, Buffer>) {
      call.on('data', (message: Buffer) => call.write(message))
      call.on('end', () => call.end())
      call.on('cancelled', cancel)
    },
    fail(call: Unary, done: Done) {
      const metadata = new Metadata()
      metadata.set('x-why', 'because')
      done({ code: status.NOT_FOUND, details: `${call.request}: ünïcode\n`, metadata })
    },
    hang: (call: Unary) => void call.on('cancelled', cancel),
  })
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    )
  })
  t.teardown(() => server.forceShutdown())
  const gatehouse = await startGatehouse(t, { upstream: `h2c://127.0.0.1:${port}` })
  const client = new Client(`localhost:${gatehouse.port}`, credentials.createSsl(Buffer.from(gatehouse.ca)))
  t.teardown(() => client.close())
  return { client, server: seen }
}

interface Answer {
  readonly message: Buffer
  readonly header: Metadata
  readonly trailer: Metadata
}

async function unary(
  client: Client,
  { path }: Method,
  message: Buffer,
  metadata = new Metadata(),
  options: CallOptions = {},
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const call = client.makeUnaryRequest(path, asIs, asIs, message, metadata, options, (error, answer) =>
    error === null ? resolve(answer!) : reject(error),
  )
  let header = new Metadata()
  let trailer = new Metadata()
  call.on('metadata', (found) => {
    header = found
  })
  call.on('status', (found) => {
    trailer = found.metadata
  })
  const answer = await promise
  await new Promise(setImmediate) // the status is told last
  return { message: answer, header, trailer }
}

async function failing(call: Promise<unknown>): Promise<ServiceError> {
  const error = await call.then(
    () => assert.fail('it went well'),
    (error: ServiceError) => error,
  )
  return error
}

type Method = MethodDefinition<Buffer, Buffer>

type Unary = ServerUnaryCall<Buffer, Buffer>
type Done = sendUnaryData<Buffer>

function asIs(message: Buffer): Buffer {
  return message
}

function method(path: string, requestStream = false, responseStream = false): Method {
  return {
    ...{ path, requestStream, responseStream },
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  }
}
