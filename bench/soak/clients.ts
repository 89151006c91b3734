import { H1Client } from './client-h1.ts'
import { isPipelinable, bodyOf, headOf } from './client-h1.ts'
import { H2Client } from './client-h2.ts'
import { converse, misbehave } from './client-other.ts'
import { ConnectFailed, type Connected, Connector } from './connect.ts'
import type { Answer } from './answer.ts'
import { Judge } from './judge.ts'
import type { ClientsOrder, Failure, FromClients, Outcome, ToClients } from './messages.ts'
import { ALL_KINDS, type Kind, type Plan, planFor, randomKind } from './plan.ts'
import { Random } from './random.ts'

/** The clients, in a process of their own: lanes that each have one connection at a time. */
class Clients {
  readonly #random: Random
  readonly #connector: Connector
  readonly #judge = new Judge()
  readonly #kinds: readonly Kind[]
  readonly #sessions: readonly (readonly [weight: number, session: (typeof SESSIONS)[number][1]])[]
  #tally: Record<string, Partial<Record<Outcome, number>>> = {}
  isStopping = false

  constructor({ port, ca, serverNames, seed, kinds, sendsGarbage }: ClientsOrder) {
    this.#random = new Random(seed)
    this.#kinds = kinds ?? ALL_KINDS
    this.#sessions = SESSIONS.filter(([, session]) => sendsGarbage || session !== 'garbage')
    this.#connector = new Connector(port, ca, serverNames, this.#random)
  }

  async run(lanes: number): Promise<void> {
    const beat = setInterval(() => this.#sayTally(), TALLY_MS)
    await Promise.all(Array.from({ length: lanes }, () => this.#lane()))
    clearInterval(beat)
    this.#sayTally()
    say({ kind: 'clients:done' })
  }

  async #lane(): Promise<void> {
    while (!this.isStopping) {
      const session = this.#random.weighted(this.#sessions)
      try {
        await this[session]()
      } catch (error) {
        if (!(error instanceof ConnectFailed)) throw error
        const { port, connectedMs, message } = error
        this.#failed('connect', { port, connectedMs }, connectedMs, null, 'lost', message, null)
      }
      await this.#pause()
    }
  }

  async keepAlive(): Promise<void> {
    const connected = await this.#connector.open('http/1.1')
    const client = new H1Client(connected.socket, this.#random)
    for (let left = this.#random.between(1, 60); left > 0 && !this.isStopping; left--) {
      const plan = this.#plan()
      const startedMs = Date.now()
      const answer = await this.#watched(connected, plan, client.exchange(plan))
      this.#note(connected, plan, answer, client.hasLeft, 'h1', startedMs)
      if (!client.keepsAlive(answer)) break
      await this.#pause()
      if (client.surplus !== null) this.#wrong(connected, plan, client.surplus, startedMs)
    }
    await ended(connected)
  }

  async newConnection(): Promise<void> {
    const connected = await this.#connector.open('http/1.1')
    const client = new H1Client(connected.socket, this.#random)
    const plan = this.#plan()
    const startedMs = Date.now()
    const answer = await this.#watched(connected, plan, client.exchange(plan))
    this.#note(connected, plan, answer, client.hasLeft, 'h1', startedMs)
    await ended(connected)
  }

  async pipelined(): Promise<void> {
    const connected = await this.#connector.open('http/1.1')
    const client = new H1Client(connected.socket, this.#random)
    for (let left = this.#random.between(1, 10); left > 0 && !this.isStopping; left--) {
      const plans = Array.from({ length: this.#random.between(2, 8) }, () => this.#plan()).filter(
        isPipelinable,
      )
      const startedMs = Date.now()
      connected.socket.write(
        Buffer.concat(plans.flatMap((plan) => [Buffer.from(headOf(plan)), bodyOf(plan)])),
      )
      let goesOn = true
      for (const plan of plans) {
        if (!goesOn) {
          this.#count(plan.kind, 'not-begun')
          continue
        }
        const answer = await this.#watched(connected, plan, client.receive(plan))
        this.#note(connected, plan, answer, false, 'h1', startedMs)
        goesOn = client.keepsAlive(answer)
      }
      if (!goesOn) break
      if (client.surplus !== null) this.#wrong(connected, plans[0] ?? this.#plan(), client.surplus, startedMs)
      await this.#pause()
    }
    await ended(connected)
  }

  async http2(): Promise<void> {
    const connected = await this.#connector.open('h2')
    const client = new H2Client(connected.socket, this.#random)
    const streams = Array.from({ length: this.#random.between(1, 6) }, async () => {
      for (let left = this.#random.between(1, 25); left > 0 && !this.isStopping; left--) {
        if (!client.isUsable) return
        const plan = this.#plan()
        const startedMs = Date.now()
        const { answer, hasLeft } = await this.#watched(connected, plan, client.exchange(plan), client)
        const isRefused = client.isGoingAway && answer.status === 0 && !hasLeft
        if (isRefused) this.#count(plan.kind, 'not-begun')
        else this.#note(connected, plan, answer, hasLeft, 'h2', startedMs)
        await this.#pause()
      }
    })
    await Promise.all(streams)
    await client.close()
    await ended(connected)
  }

  async upgraded(): Promise<void> {
    const connected = await this.#connector.open('http/1.1')
    const random = this.#random
    const plan: Plan = {
      ...planFor(random, 'get'),
      kind: 'websocket',
      route: '',
      status: random.chance(0.1) ? 403 : 101,
      size: random.between(10, 50_000),
      pieceMax: random.pick([1000, 20_000]), // each piece waits for the one before it to come back
      fault: random.chance(0.1) ? 'cut-body' : 'none',
      leaves: random.chance(0.1) ? 'in-answer' : 'never',
    }
    const startedMs = Date.now()
    const { answer, hasLeft } = await this.#watched(connected, plan, converse(connected.socket, plan, random))
    this.#noteConversation(connected, plan, answer, hasLeft, startedMs)
    await ended(connected)
  }

  async garbage(): Promise<void> {
    const what = await misbehave(this.#connector.plan(), this.#random)
    const atMs = Date.now()
    if (what === null) this.#count('garbage', 'failed-as-planned')
    else this.#failed('garbage', { port: 0, connectedMs: atMs }, atMs, null, 'wrong', what, null)
  }

  #plan(): Plan {
    return planFor(this.#random, randomKind(this.#random, this.#kinds))
  }

  /** A connection on which nothing moves any more is ended after a while. */
  async #watched<T>(
    { socket, port, connectedMs }: Connected,
    plan: Plan,
    answer: Promise<T>,
    session: H2Client | null = null,
  ): Promise<T> {
    const startedMs = Date.now()
    let moved = -1
    const timer = setInterval(() => {
      const { alpnProtocol, bytesRead, bytesWritten } = socket
      if (bytesRead + bytesWritten > moved) {
        moved = bytesRead + bytesWritten
        return
      }
      clearInterval(timer)
      const state = session === null ? '' : ` (${session.state})`
      const what = `hangs: ${alpnProtocol}, ${bytesRead} bytes read and ${bytesWritten} written${state}, port ${port}`
      this.#failed(plan.kind, { port, connectedMs }, startedMs, plan, 'lost', what, null)
      socket.destroy()
    }, HANGS_MS)
    try {
      return await answer
    } finally {
      clearInterval(timer)
    }
  }

  #note(
    connected: Connected,
    plan: Plan,
    answer: Answer,
    hasLeft: boolean,
    protocol: 'h1' | 'h2',
    startedMs: number,
  ): void {
    const { helloKind } = connected
    const { outcome, what, code } = this.#judge.judge(plan, answer, hasLeft, { helloKind, protocol })
    if (outcome !== 'lost' && outcome !== 'wrong') return this.#count(plan.kind, outcome)
    this.#failed(plan.kind, connected, startedMs, plan, outcome, `${protocol}: ${what}`, code)
  }

  #noteConversation(
    connected: Connected,
    plan: Plan,
    answer: Answer,
    hasLeft: boolean,
    startedMs: number,
  ): void {
    const isRight =
      answer.isWhole && answer.isFromApp && answer.status === plan.status && answer.wrong === null
    const isAllThere = plan.status !== 101 || answer.bytes === plan.size
    if (isRight && isAllThere) return this.#count(plan.kind, 'right')
    this.#note(connected, plan, Object.assign(answer, { isWhole: false }), hasLeft, 'h1', startedMs)
  }

  #wrong(connected: Connected, plan: Plan, what: string, startedMs: number): void {
    this.#failed(plan.kind, connected, startedMs, plan, 'wrong', what, null)
  }

  #failed(
    kind: string,
    { port, connectedMs }: { readonly port: number; readonly connectedMs: number },
    startedMs: number,
    plan: Plan | null,
    outcome: Failure['outcome'],
    what: string,
    code: string | null,
  ): void {
    this.#count(kind, outcome)
    const { id = null, method = '' } = plan ?? {}
    const times = { connectedMs, startedMs, endedMs: Date.now() }
    say({
      kind: 'clients:failure',
      failure: {
        outcome,
        kind,
        id,
        method,
        what: plan === null ? what : `${what} (${shapeOf(plan)})`,
        code,
        port,
        ...times,
      },
    })
  }

  #count(kind: string, outcome: Outcome): void {
    this.#tally[kind] ??= {}
    const counts = this.#tally[kind]
    counts[outcome] = (counts[outcome] ?? 0) + 1
  }

  #sayTally(): void {
    say({ kind: 'clients:tally', tally: this.#tally, openConnections: this.#connector.openConnections })
    this.#tally = {}
  }

  /** As people and programs have them between two requests. */
  async #pause(): Promise<void> {
    const ms = this.#random.chance(0.5) ? 0 : this.#random.between(0, PAUSE_MS_MAX)
    await new Promise((resolve) => setTimeout(resolve, ms))
  }
}

function shapeOf({ route, status, size, framing, upload, uploadIsChunked, fault, pieceMax }: Plan): string {
  const sent = upload === 0 ? '' : `, ${upload} bytes sent${uploadIsChunked ? ' in chunks' : ''}`
  return `to /${route}, ${fault}, ${status} with ${size} bytes by ${framing}${sent}, pieces of ${pieceMax}`
}

/** Says goodbye, unless that has been done. */
async function ended({ socket }: Connected): Promise<void> {
  if (socket.closed) return
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.end()
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), GOODBYE_MS)
  await closed
  clearTimeout(timer)
}

function say(message: FromClients): void {
  process.send?.(message)
}

const SESSIONS = [
  [30, 'keepAlive'],
  [12, 'newConnection'],
  [10, 'pipelined'],
  [30, 'http2'],
  [10, 'upgraded'],
  [8, 'garbage'],
] as const
const TALLY_MS = 500
const PAUSE_MS_MAX = 200
/** Above every time-out of the soak's configuration, on a machine that has much else to do. */
const HANGS_MS = 30_000
const GOODBYE_MS = 2000

let clients: Clients | null = null
process.on('disconnect', () => process.exit(0))
process.on('SIGINT', () => undefined) // the parent ends it
process.on('message', (message: ToClients) => {
  if (message.kind === 'clients:stop') {
    if (clients !== null) clients.isStopping = true
    return
  }
  clients = new Clients(message)
  void clients.run(message.lanes)
})
say({ kind: 'clients:ready' })
