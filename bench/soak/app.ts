import type { EventEmitter } from 'node:events'
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo, Server, Socket } from 'node:net'
import { AppAnswer } from './app-answer.ts'
import { upgrade } from './app-upgrade.ts'
import { appView } from './app-view.ts'
import { AppRecord } from './app-record.ts'
import type { AppClose, FromApp, ToApp } from './messages.ts'
import { Pattern } from './pattern.ts'
import { decodePlan, type Plan } from './plan.ts'

/** The app behind the gate, in a process of its own: it does what the plan of each request says. */
export type AppRequest = IncomingMessage | Http2ServerRequest
export type AppResponse = ServerResponse | Http2ServerResponse

function say(message: FromApp): void {
  process.send?.(message)
}

async function serve(request: AppRequest, response: AppResponse): Promise<void> {
  response.on('error', () => undefined)
  request.on('error', () => undefined)
  const plan = decodePlan(request.headers['x-soak-plan'])
  note(plan, connectionOf(request))
  const { view, problems } = appView(request, plan)
  for (const problem of problems) isWrong(plan, problem)
  // Node says so of a stream that was reset, too.
  response.once('finish', () => isReset(request) || record.answered(plan.id))
  const answer = new AppAnswer(plan, request, response, view, closes)
  if (plan.fault === 'early' || plan.fault === 'early-close') {
    request.resume()
    return answer.send()
  }
  if (plan.fault === 'echo') return answer.echo()
  if (await readUpload(request, plan)) await answer.send()
}

/** Whether all of it came. */
async function readUpload(request: AppRequest, plan: Plan): Promise<boolean> {
  const pattern = new Pattern(`up ${plan.id}`)
  let bytes = 0
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      bytes += piece.length
      const fault = bytes > plan.upload ? 'too many bytes' : pattern.fault(piece)
      if (fault !== null) return isWrong(plan, `${fault}; before ${bytes} of its upload`)
      if (plan.pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, plan.pauseMs))
    }
  } catch {
    return false // broken off, and known to be
  }
  // HTTP/2 ends the stream of a request that was reset before it says that it was.
  if ((request as { aborted?: boolean }).aborted === true || isReset(request)) return false
  if (bytes !== plan.upload) return isWrong(plan, `${bytes} of ${plan.upload} bytes looked whole`)
  if (plan.hasTrailers && request.trailers['x-soak-trailer'] !== plan.id)
    return isWrong(plan, `its trailers are ${JSON.stringify(request.trailers)}`)
  return true
}

function connectionOf(request: AppRequest): EventEmitter {
  return 'stream' in request ? (request.stream.session ?? request.stream) : request.socket
}

function isWrong({ kind, id, route, leaves }: Plan, what: string): false {
  say({ kind: 'app:wrong', what: `${kind} ${id} (${route}, leaves ${leaves}): ${what}` })
  return false
}

function isReset(request: AppRequest): boolean {
  return 'stream' in request && (request.stream.aborted || (request.stream.rstCode ?? 0) !== 0)
}

const record = new AppRecord()

function note({ id, kind, method }: Plan, connection: EventEmitter): void {
  const times = record.came(id, connection)
  // What is idempotent may be sent once more where it is not known whether it came.
  if (times > (method === 'POST' ? 1 : 2))
    say({ kind: 'app:wrong', what: `${kind} ${id}: came ${times} times` })
}

/** Called as it does so. No request follows one that announces the end or breaks off an answer. */
function closes(connection: EventEmitter, close: AppClose): void {
  record.closes(connection, close)
  if (close.why !== 'cut') say({ kind: 'app:closed', atMs: Date.now() })
}

/** Now and then a connection is closed just after its answer, when the next request may be on its way. */
function closeWhenIdle(connection: EventEmitter, isIdle: () => boolean, close: () => void): void {
  if (Math.random() > CLOSED_IDLE_SHARE) return
  setTimeout(() => {
    if (!isIdle()) return
    closes(connection, { why: 'idle', id: null })
    close()
  }, Math.random() * CLOSED_IDLE_MS_MAX)
}

function startH1(): Server {
  const underway = new WeakMap<Socket, number>()
  const newest = new WeakMap<Socket, IncomingMessage>()
  const server = createHttp({ keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true }, (request, response) => {
    const { socket } = request
    underway.set(socket, (underway.get(socket) ?? 0) + 1)
    newest.set(socket, request)
    response.once('close', () => {
      underway.set(socket, underway.get(socket)! - 1)
      closeWhenIdle(
        socket,
        // One that has its answer early may still be coming.
        () => !socket.destroyed && underway.get(socket) === 0 && newest.get(socket)!.complete,
        () => socket.destroy(),
      )
    })
    void serve(request, response)
  })
  server.on('upgrade', (request, socket, head) => {
    const plan = decodePlan(request.headers['x-soak-plan'])
    note(plan, socket)
    const { view, problems } = appView(request, plan)
    for (const problem of problems) isWrong(plan, problem)
    upgrade(plan, view, socket as Socket, head)
  })
  return server.listen(0, '127.0.0.1')
}

function startH2c(): Server {
  const server = createHttp2({ settings: { maxConcurrentStreams: 200 } }, (request, response) => {
    const { session } = request.stream
    response.once('close', () => {
      if (session === undefined) return
      closeWhenIdle(
        session,
        () => !session.closed && !session.destroyed,
        () => session.close(),
      )
    })
    void serve(request, response)
  })
  server.on('session', (session) => session.on('error', () => undefined))
  server.on('sessionError', () => undefined)
  return server.listen(0, '127.0.0.1')
}

/** Far longer than the gateway's: it is first also when the machine is busy. */
const KEEP_ALIVE_MS = 15_000
const CLOSED_IDLE_SHARE = 0.02
const CLOSED_IDLE_MS_MAX = 30

process.on('disconnect', () => process.exit(0))
process.on('SIGINT', () => undefined) // the parent ends it
process.on('message', (message: ToApp) => {
  say({ kind: 'app:seen', id: message.id, seen: record.seen(message.id) })
})
const [h1, h2c] = [startH1(), startH2c()]
let listening = 0
for (const server of [h1, h2c])
  server.once('listening', () => {
    if (++listening < 2) return
    const [h1Port, h2cPort] = [h1, h2c].map((each) => (each.address() as AddressInfo).port) as [
      number,
      number,
    ]
    say({ kind: 'app:ready', h1Port, h2cPort })
  })
