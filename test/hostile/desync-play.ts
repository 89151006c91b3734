import assert from 'node:assert/strict'
import type { Sighting } from '../../src/plane/sighting.ts'
import type { Peer } from '../proxy/front.ts'
import { getRequest, headers } from '../proxy/http2-frames.ts'
import { type Case, type Forwarded, MARK, seen } from './desync-case.ts'
import { type Door, type Gate, inTime } from './desync-gate.ts'
import type { Http2Case, Http2Outcome } from './desync-http2.ts'
import { Http2Peer } from './desync-http2-peer.ts'
import { type Message, MessageReader } from './desync-messages.ts'
import { ownName, type Seen, type Upstream } from './desync-upstreams.ts'

/** Plays cases against one worker, and in the end looks at what its upstream has made of them. */
export class Play {
  readonly #gate: Gate
  readonly #upstream: Upstream
  readonly #played: Played[] = []
  readonly #faults: string[] = []
  readonly #bystanders = new Map<Door, Peer>()

  constructor(gate: Gate, upstream: Upstream) {
    this.#gate = gate
    this.#upstream = upstream
  }

  get count(): number {
    return this.#played.length
  }

  /** `cuts`: where the bytes are cut in pieces, each of which arrives before the next one is sent. */
  async play(one: Case, door: Door, cuts: readonly number[] = []): Promise<void> {
    const title = `${one.family}: ${one.name} (${door}${cuts.length === 0 ? '' : `, cut at ${cuts}`})`
    await this.#play(title, door, (mark, forwarded) =>
      this.#run(marked(one, mark), forwarded, { door, cuts, mark }),
    )
  }

  async playHttp2(one: Http2Case, door: Door): Promise<void> {
    const title = `${one.family}: ${one.name} (${door})`
    await this.#play(title, door, async (mark, forwarded) => {
      const wanted = this.#gate.http2 === 'node' && one.node !== null ? one.node : one
      forwarded.push(...marked(wanted.forwarded, mark))
      const peer = await Http2Peer.open(this.#gate, door, one.isLate)
      peer.write(withMark(one.frames, mark))
      await this.#hear(peer, wanted.outcome, forwarded)
      if (wanted.outcome !== 'gone') forwarded.push(await askHttp2(peer, mark))
      peer.close()
    })
  }

  async #play(
    title: string,
    door: Door,
    run: (mark: string, forwarded: Forwarded[]) => Promise<void>,
  ): Promise<void> {
    const mark = String(this.#played.length).padStart(MARK.length, '0')
    const forwarded: Forwarded[] = []
    this.#played.push({ title, mark, forwarded })
    await this.#noting(title, () => run(mark, forwarded))
    const bystander = await this.#bystander(door)
    await this.#noting(title, async () => void forwarded.push(await this.#ask(bystander, mark, 'bystander')))
  }

  async #hear(peer: Http2Peer, wanted: Http2Outcome, forwarded: readonly Forwarded[]): Promise<void> {
    const { status, body, end } = await peer.endOf(1)
    const heard = end === 'whole' ? status : end
    if (wanted === 'malformed') assert.ok(heard === 400 || heard === 'reset', `answered ${heard}`)
    else assert.equal(heard, wanted, `answered ${status}`)
    const [request] = forwarded
    if (wanted !== 200 || isOwnWord(this.#upstream, body)) return
    const [method = '', target = ''] = request!.line.split(' ')
    assert.equal(body, ownName(method, target, request!.body.length))
  }

  async #run(run: Case, forwarded: Forwarded[], { door, cuts, mark }: Run): Promise<void> {
    forwarded.push(...run.forwarded)
    const peer = await this.#gate.dial(door)
    try {
      await send(peer, run.bytes, cuts)
      if (run.end === 'client') peer.socket.end()
      await inTime(outcome(peer, run), () => JSON.stringify(peer.text))
      assertAnswers(peer, run, this.#upstream)
      if (run.end === 'open') forwarded.push(await this.#ask(peer, mark, 'probe'))
    } finally {
      peer.socket.destroy()
    }
  }

  /** One that fails shall not keep the others from being tried. */
  async #noting(title: string, work: () => void | Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#faults.push(`${title}: ${(error as Error).message}`)
    }
  }

  /** Everything the upstream was sent, and nothing else; and the worker has decided on just that. */
  async settle(): Promise<void> {
    const sightings = byMark(await this.#gate.sightings(), ({ host, path }) => `${path} ${host}`)
    const asked = byMark(await this.#upstream.seen(), ({ line, host }) => `${line} ${host}`)
    const { behind } = this.#upstream
    const reached = behind === null ? null : byMark(behind, ({ line, host }) => `${line} ${host}`)
    for (const { title, mark, forwarded } of this.#played) {
      await this.#noting(title, () => {
        assertDecided(sightings.get(mark) ?? [], forwarded)
        assertSeen(asked.get(mark) ?? [], forwarded, 'seen')
        assertShared(asked.get(mark) ?? [], forwarded)
        if (reached !== null) assertReached(reached.get(mark) ?? [], forwarded, 'behind')
      })
      for (const found of [sightings, asked, reached]) found?.delete(mark)
    }
    assert.equal(this.#faults.join('\n\n'), '')
    assert.deepEqual(this.#upstream.faults, [])
    for (const found of [sightings, asked, reached]) assert.deepEqual([...(found ?? [])], [], 'of no run')
  }

  /** Another client, which gets the upstream's connection next. */
  async #bystander(door: Door): Promise<Peer> {
    const known = this.#bystanders.get(door)
    if (known !== undefined) return known
    const peer = await this.#gate.dial(door)
    this.#bystanders.set(door, peer)
    return peer
  }

  /** One whole request, which must get its own answer and no other. */
  async #ask(peer: Peer, mark: string, who: string): Promise<Forwarded> {
    peer.forget()
    const target = `/${mark}/${who}`
    peer.write(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`)
    const answers = () => answersIn(peer.bytes, ['GET'], false).whole
    await inTime(
      peer.hears(() => answers().length > 0),
      () => who,
    )
    const [answer, ...more] = answers()
    assert.deepEqual(more, [], `${who} gets one answer`)
    assert.deepEqual([statusOf(answer!), answer!.body], [200, ownName('GET', target, 0)], who)
    return seen(`GET ${target}`)
  }
}

interface Run {
  readonly door: Door
  readonly cuts: readonly number[]
  readonly mark: string
}

interface Played {
  readonly title: string
  readonly mark: string
  readonly forwarded: Forwarded[]
}

/** With its number instead of the mark, which is as long. */
function marked<T>(one: T, mark: string): T {
  return JSON.parse(JSON.stringify(one).replaceAll(MARK, mark))
}

function withMark(frames: Buffer, mark: string): Buffer {
  return Buffer.from(frames.toString('latin1').replaceAll(MARK, mark), 'latin1')
}

/** On the same connection, once the first has come to its end. */
async function askHttp2(peer: Http2Peer, mark: string): Promise<Forwarded> {
  const target = `/${mark}/probe`
  peer.write(headers(101, getRequest({ ':path': target })))
  const { status, body, end } = await peer.endOf(101)
  assert.deepEqual([end, status, body], ['whole', 200, ownName('GET', target, 0)])
  return seen(`GET ${target}`)
}

/** A server may answer without its app, and then does not name the request. */
function isOwnWord({ behind }: Upstream, body: string): boolean {
  return behind !== null && !/\d{6}/.test(body)
}

async function send(peer: Peer, bytes: string, cuts: readonly number[]): Promise<void> {
  let from = 0
  for (const cut of cuts) {
    peer.write(bytes.slice(from, cut))
    from = cut
    await turn()
  }
  peer.write(bytes.slice(from))
}

/** Long enough for what was sent to arrive, mostly: the result is the same if it has not. */
async function turn(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
}

function outcome(peer: Peer, run: Case): Promise<unknown> {
  if (run.end !== 'open') return peer.closed
  return peer.hears(() => answersIn(peer.bytes, methodsOf(run), false).whole.length >= answerCount(run))
}

function answerCount({ forwarded, refused }: Case): number {
  return forwarded.filter(({ isWhole }) => isWhole).length + (refused === null ? 0 : 1)
}

function methodsOf({ forwarded }: Case): string[] {
  return forwarded.filter(({ isWhole }) => isWhole).map(({ line }) => line.split(' ')[0]!)
}

function assertAnswers(peer: Peer, run: Case, upstream: Upstream): void {
  const { whole, rest } = answersIn(peer.bytes, methodsOf(run), peer.socket.destroyed)
  const wanted: (readonly [number, string | null])[] = run.forwarded
    .filter(({ isWhole }) => isWhole)
    .map(({ line, body }) => {
      const [method = '', target = ''] = line.split(' ')
      return [200, method === 'HEAD' ? '' : ownName(method, target, body.length)]
    })
  if (run.refused !== null) wanted.push([run.refused, null])
  const heard = whole.map((answer, index) => {
    if (isOwnWord(upstream, answer.body) && index < wanted.length && wanted[index]![1] !== null)
      return wanted[index]
    return [statusOf(answer), wanted[index]?.[1] === null ? null : answer.body]
  })
  assert.deepEqual(heard, wanted, 'answered')
  assert.equal(rest, '', 'nothing more')
}

/** The final answers to requests by these methods; what is behind them is to be read like one to a GET. */
export function answersIn(
  bytes: Buffer,
  methods: readonly string[],
  hasEnded: boolean,
): { whole: Message[]; rest: string } {
  const whole: Message[] = []
  const reader = new MessageReader((start) => {
    const status = Number(start.slice(9, 12))
    const isBodyless = status < 200 || status === 204 || status === 304 || methods[whole.length] === 'HEAD'
    return isBodyless ? 'bodyless' : 'until-close'
  })
  reader.add(bytes)
  if (hasEnded) reader.end()
  for (let message = reader.next(); message !== null; message = reader.next()) {
    if (statusOf(message) >= 200) whole.push(message)
  }
  return { whole, rest: reader.rest }
}

export function statusOf({ start }: Message): number {
  return Number(start.slice(9, 12))
}

/** Those of no run are under `''`. */
function byMark<T>(found: readonly T[], text: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of found) {
    const mark = /\d{6}/.exec(text(one))?.[0] ?? ''
    groups.set(mark, [...(groups.get(mark) ?? []), one])
  }
  return groups
}

/** What broke off may have done so before there was anything to decide. */
function assertDecided(found: readonly Sighting[], wanted: readonly Forwarded[]): void {
  const lines = found.map(lineOf)
  for (const broken of wanted.filter(({ isWhole }) => !isWhole)) {
    const at = lines.indexOf(pathLine(broken))
    if (at !== -1) lines.splice(at, 1)
  }
  assert.deepEqual(lines, wanted.filter(({ isWhole }) => isWhole).map(pathLine), 'decided on')
}

function lineOf({ method, path, action }: Sighting): string {
  assert.equal(action, 'tag', 'no rule stops it')
  return `${method} ${path}`
}

function pathLine({ line }: Forwarded): string {
  return line.split('?')[0]!
}

/** In its own words, as far as it tells. What broke off on the way may have been seen in part, or not. */
function assertSeen(found: readonly Seen[], wanted: readonly Forwarded[], title: string): void {
  const [whole, broken] = [wanted.filter(({ isWhole }) => isWhole), wanted.filter(({ isWhole }) => !isWhole)]
  const left = [...found]
  for (const each of broken) {
    const at = left.findIndex(({ line, isWhole }) => line === each.line && isWhole !== true)
    if (at !== -1) left.splice(at, 1)
  }
  // Logs are written when an answer is out, which on two connections may be in any order.
  if (found.every(({ connection }) => connection === null)) {
    for (const list of [left, whole]) list.sort((one, other) => (one.line < other.line ? -1 : 1))
  }
  assert.deepEqual(
    left.map((one, index) => told(one, whole[index])),
    whole.map(({ line, host, framing, body }) => ({ line, host, framing, body, isWhole: true })),
    title,
  )
}

/** The bystander came behind the last of them on its connection, unless that went for a good reason. */
function assertShared(found: readonly Seen[], wanted: readonly Forwarded[]): void {
  if (wanted.some(({ isWhole, isUpgrade }) => !isWhole || isUpgrade)) return
  const connections = new Set(found.map(({ connection }) => connection))
  assert.ok(connections.size === 1, 'all on one connection')
}

/** What got through to an app behind: some of it the server in between may have answered by itself. */
function assertReached(found: readonly Seen[], wanted: readonly Forwarded[], title: string): void {
  const left = wanted.filter(({ isWhole }) => isWhole)
  for (const one of found.filter(({ isWhole }) => isWhole)) {
    const at = left.findIndex(
      ({ line, host, body }) => line === one.line && host === one.host && body === one.body,
    )
    assert.notEqual(at, -1, `${title}: ${JSON.stringify(one)}`)
    left.splice(at, 1)
  }
}

function told({ line, host, framing, body, isWhole }: Seen, wanted: Forwarded | undefined) {
  return {
    ...{ line, host: host ?? wanted?.host, framing: framing ?? wanted?.framing },
    ...{ body: body ?? wanted?.body, isWhole: isWhole ?? wanted?.isWhole },
  }
}
