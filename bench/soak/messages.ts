import type { Kind } from './plan.ts'

/** What the processes of a soak tell each other. */
export type FromApp =
  | { readonly kind: 'app:ready'; readonly h1Port: number; readonly h2cPort: number }
  /** It received something that was never sent, or something twice. */
  | { readonly kind: 'app:wrong'; readonly what: string }
  /** It closed a connection unannounced, on which a request may have been on its way. */
  | { readonly kind: 'app:closed'; readonly atMs: number }
  | { readonly kind: 'app:seen'; readonly id: string; readonly seen: Seen }

/** What the app knows of a request. */
export interface Seen {
  /** How often it came. */
  readonly times: number
  /** The last time it came, all of the answer was written. */
  readonly isAnswered: boolean
  /** What the app did to the connection on which it came last. */
  readonly close: AppClose | null
  /** What the app saw of that connection's end; `null` while it is open. */
  readonly ended: string | null
}

export interface AppClose {
  readonly why: 'idle' | 'early-close' | 'cut'
  /** The request whose plan it was; `null`: of no request. */
  readonly id: string | null
}

export interface ToApp {
  readonly kind: 'app:seen?'
  readonly id: string
}

export interface ClientsOrder {
  readonly kind: 'clients:start'
  readonly port: number
  readonly ca: string
  readonly serverNames: readonly string[]
  readonly lanes: number
  /** Only these; `null` is all. */
  readonly kinds: readonly Kind[] | null
  /** Some of them send invalid requests. */
  readonly sendsGarbage: boolean
  readonly seed: number
}

export type ToClients = ClientsOrder | { readonly kind: 'clients:stop' }

export type FromClients =
  | { readonly kind: 'clients:ready' }
  | { readonly kind: 'clients:tally'; readonly tally: Tally; readonly openConnections: number }
  | { readonly kind: 'clients:failure'; readonly failure: Failure }
  | { readonly kind: 'clients:done' }

/** By kind of request and result. */
export type Tally = Readonly<Record<string, Readonly<Partial<Record<Outcome, number>>>>>

export type Outcome =
  /** As planned, to the last byte. */
  | 'right'
  /** The app or the policy has made it fail, as planned. */
  | 'failed-as-planned'
  /** The client left, as planned. */
  | 'left'
  /** It stood behind an answer that was the last one of its connection, and said so. */
  | 'not-begun'
  /** It failed, and the ledger has to find out why. */
  | 'lost'
  | 'wrong'

export interface Failure {
  readonly outcome: 'lost' | 'wrong'
  readonly kind: string
  /** Of the request; `null` where there was only a connection. */
  readonly id: string | null
  readonly method: string
  readonly what: string
  /** What Gatehouse says of it, where it answered in the app's place. */
  readonly code: string | null
  /** The client's. */
  readonly port: number
  readonly connectedMs: number
  readonly startedMs: number
  readonly endedMs: number
}
