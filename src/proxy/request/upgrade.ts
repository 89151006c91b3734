import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { request } from '../../shared/node-http.ts'
import type { Upgrade } from '../connection/upgrade.ts'
import { answersKey, webSocketKey } from '../connection/web-socket-key.ts'
import { Dialer, failureOf, type UpstreamAddress } from '../upstream/upstream-dial.ts'
import type { UpstreamFailure } from '../upstream/upstream-stream.ts'
import { limitPieces } from './upgrade-pieces.ts'

export type UpgradeOutcome =
  /** The app agreed, and the connection has ended. */
  | { readonly kind: 'ended' }
  /** The app answered with an ordinary response, which was passed on. */
  | { readonly kind: 'declined'; readonly status: number }
  | { readonly kind: 'client-gone' }
  /** Nothing was sent to the client: the caller must answer. */
  | { readonly kind: 'failed'; readonly reason: UpstreamFailure }
  /** The same: the app has answered, but an extended CONNECT cannot have this answer. */
  | { readonly kind: 'unfit' }

export interface Upgrading {
  readonly upgrade: Upgrade
  /** All headers for the app, except Connection and Upgrade. */
  readonly headers: readonly string[]
  readonly target: UpstreamAddress
  /** 0: no limit. */
  readonly times: {
    readonly connectTimeoutMs: number
    readonly headTimeoutMs: number
    readonly idleTimeoutMs: number
  }
  /** How long both sides may be silent. 0: no limit. */
  readonly idleMs: number
  /** Called if they were silent for too long. */
  idled(): void
  /** Called once. */
  done(outcome: UpgradeOutcome): void
}

/**
 * Carries WebSockets and other upgrades: once the app agrees, bytes pass both ways until one side ends. The end
 * of one side ends the other, also before the app has answered.
 */
export class Upgrades {
  readonly #underway = new Set<CarriedUpgrade>()
  readonly #dialers = new WeakMap<UpstreamAddress, Dialer>()

  /** The number of current upgrades. */
  get count(): number {
    return this.#underway.size
  }

  carry(upgrading: Upgrading): void {
    const { target } = upgrading
    let dialer = this.#dialers.get(target)
    if (dialer === undefined) {
      dialer = new Dialer(target)
      this.#dialers.set(target, dialer)
    }
    const carried: CarriedUpgrade = new CarriedUpgrade(upgrading, () => this.#underway.delete(carried))
    this.#underway.add(carried)
    carried.ask(dialer)
  }

  /** Ends all current upgrades. */
  close(): void {
    for (const carried of this.#underway) carried.end()
  }
}

/** One upgrade, from the request to the end of both connections. */
class CarriedUpgrade {
  readonly #upgrading: Upgrading
  readonly #forget: () => void
  /** `null`: the client has its own. */
  readonly #key: string | null
  #outgoing: ClientRequest | null = null
  #timer: NodeJS.Timeout | undefined
  #stage: 'connecting' | 'asking' | 'answered' | 'over' = 'connecting'
  readonly #clientGone = () => {
    this.#finish({ kind: 'client-gone' })
    this.#outgoing?.destroy()
    this.#upgrading.upgrade.stream.destroy()
  }

  constructor(upgrading: Upgrading, forget: () => void) {
    this.#upgrading = upgrading
    this.#forget = forget
    this.#key = upgrading.upgrade.isKeyless ? webSocketKey() : null
  }

  ask(dialer: Dialer): void {
    const { upgrade, times } = this.#upgrading
    let outgoing: ClientRequest
    try {
      outgoing = request({
        path: upgrade.requestHead.target,
        headers: this.#headers(),
        createConnection: () => dialer.dial(null, () => this.#connected()),
      })
    } catch {
      return this.#finish({ kind: 'failed', reason: 'bad-request' }) // a header that Node does not write
    }
    this.#outgoing = outgoing
    this.#limit(times.connectTimeoutMs, 'connect-timeout')
    upgrade.stream.once('end', this.#clientGone).once('close', this.#clientGone)
    outgoing
      .once('upgrade', (response, app, first) => this.#agreed(response, app as Socket, first))
      .once('response', (response) => this.#declined(response))
      .on('error', (error) => this.#failed(error))
      .end()
  }

  end(): void {
    this.#upgrading.upgrade.stream.destroy()
  }

  #headers(): string[] {
    const { headers, upgrade } = this.#upgrading
    const sent: string[] = []
    for (let i = 0; i < headers.length; i += 2) {
      const isLeftOut = TRAILER.test(headers[i]!) || (this.#key !== null && HANDSHAKE.test(headers[i]!))
      if (!isLeftOut) sent.push(headers[i]!, headers[i + 1]!)
    }
    if (this.#key !== null) sent.push('Sec-WebSocket-Key', this.#key)
    sent.push('Connection', 'Upgrade', 'Upgrade', upgrade.protocol)
    return sent
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (this.#stage !== 'connecting' && this.#stage !== 'asking') return
    const isParsers = error.code?.startsWith('HPE_') === true
    const reason = isParsers ? 'bad-response' : failureOf(error, this.#stage === 'connecting')
    this.#finish({ kind: 'failed', reason })
  }

  #connected(): void {
    if (this.#stage !== 'connecting') return
    this.#stage = 'asking'
    this.#limit(this.#upgrading.times.headTimeoutMs, 'head-timeout')
  }

  #limit(timeoutMs: number, reason: UpstreamFailure): void {
    clearTimeout(this.#timer)
    if (timeoutMs === 0) return
    this.#timer = setTimeout(() => {
      this.#finish({ kind: 'failed', reason })
      this.#outgoing?.destroy()
    }, timeoutMs)
  }

  /** `first`: the bytes that came with the answer. */
  #agreed({ rawHeaders }: IncomingMessage, app: Socket, first: Buffer): void {
    const { upgrade, idleMs } = this.#upgrading
    const { stream } = upgrade
    app.on('error', () => app.destroy())
    if (this.#key !== null && !answersKey(this.#key, rawHeaders)) return this.#unfit(app)
    this.#answered()
    upgrade.agree(rawHeaders)
    if (first.length > 0) app.unshift(first)
    if (idleMs > 0) stream.setTimeout(idleMs, () => this.#idled())
    stream.pipe(app)
    app.pipe(stream)
    limitPieces(stream, app)
    limitPieces(app, stream)
    // When one side ends, for any reason, the other ends too. A reset is passed on as one (RFC 8441 §5).
    app.once('close', (isReset) => (isReset && upgrade.isKeyless ? stream.destroy() : stream.destroySoon()))
    stream.once('close', () => {
      app.destroy()
      this.#finish({ kind: 'ended' })
    })
  }

  #idled(): void {
    this.#upgrading.idled()
    this.#upgrading.upgrade.stream.destroy()
  }

  /** The app's own answer. */
  #declined(response: IncomingMessage): void {
    const { upgrade, times } = this.#upgrading
    const { statusCode: status = 0, statusMessage = null, rawHeaders } = response
    // To an extended CONNECT any 2xx means that the WebSocket is open (RFC 9110 §9.3.6).
    if (this.#key !== null && status >= 200 && status < 300) return this.#unfit(response)
    this.#answered()
    upgrade.answer(status, rawHeaders, statusMessage)
    if (times.idleTimeoutMs > 0) response.setTimeout(times.idleTimeoutMs, () => response.destroy())
    response.pipe(upgrade.stream, { end: false })
    response.once('end', () => upgrade.finish()).on('error', () => {})
    response.once('close', () => {
      if (!response.complete) upgrade.cutOff()
      this.#finish({ kind: 'declined', status })
    })
    upgrade.stream.once('close', () => response.destroy())
  }

  #unfit(app: { destroy(): unknown }): void {
    app.destroy()
    this.#finish({ kind: 'unfit' })
  }

  /** From here on the app answers the client. */
  #answered(): void {
    this.#stage = 'answered'
    clearTimeout(this.#timer)
    this.#upgrading.upgrade.stream.off('end', this.#clientGone).off('close', this.#clientGone)
  }

  #finish(outcome: UpgradeOutcome): void {
    if (this.#stage === 'over') return
    this.#answered()
    this.#stage = 'over'
    this.#forget()
    this.#upgrading.done(outcome)
  }
}

/** Announces trailers of a body. There is no body here, so Node would throw. */
const TRAILER = /^trailer$/i
/** Headers of the handshake that the proxy itself does with the app. */
const HANDSHAKE = /^sec-websocket-(?:key|accept)$/i
