import { randomUUID } from 'node:crypto'
import type { Random } from './random.ts'

/** One request and the answer it is to have. It goes along in a header, so that the app plays its part in it. */
export interface Plan {
  /** It cannot be guessed; all bytes of the request and of the answer follow from it. */
  readonly id: string
  /** As the tables call it. */
  readonly kind: string
  readonly method: 'GET' | 'HEAD' | 'POST'
  /** In front of the path: what the policy goes by. */
  readonly route: Route
  /** Bytes the client sends, with a length or in chunks. */
  readonly upload: number
  readonly uploadIsChunked: boolean
  readonly status: number
  /** Bytes the app answers with. */
  readonly size: number
  readonly framing: 'length' | 'chunked' | 'close'
  /** Behind the bodies, both ways. */
  readonly hasTrailers: boolean
  /** No piece of a body is larger. */
  readonly pieceMax: number
  /** Between two pieces of a body. */
  readonly pauseMs: number
  /** What the app does to it. */
  readonly fault: AppFault
  /** Where the client leaves. */
  readonly leaves: 'never' | 'in-request' | 'in-answer'
  /** The client is in no hurry to read. */
  readonly readsSlowly: boolean
  /** The client sends headers that only we may say. */
  readonly forges: boolean
}

/** What is done to a request by the policy of the soak; `''`: it goes to the app and is tagged. */
export type Route = '' | 'pass' | 'h2c' | 'impatient' | 'blocked' | 'redirected' | 'limited' | 'tarpit'

export type AppFault =
  | 'none'
  /** Closes the connection in place of an answer. */
  | 'cut-head'
  /** Closes it within the answer. */
  | 'cut-body'
  /** Answers before the body has come, and goes on reading. */
  | 'early'
  /** The same, and closes. */
  | 'early-close'
  /** Never answers. */
  | 'silent'
  /** Begins to answer, and never ends. */
  | 'stalled'
  /** Answers with what it reads, while it reads. */
  | 'echo'

export function planFor(random: Random, kind: Kind): Plan {
  const wished = KINDS[kind](random)
  const fault = wished.fault ?? 'none'
  const base: Plan = {
    id: randomUUID(),
    kind,
    method: 'GET',
    route: random.weighted(ROUTES),
    upload: 0,
    uploadIsChunked: random.chance(0.5),
    status: 200,
    size: random.between(0, 3000),
    framing: random.weighted(FRAMINGS),
    hasTrailers: false,
    pieceMax: random.pick([100, 5000, 70_000]),
    pauseMs: 0,
    fault,
    leaves: 'never',
    readsSlowly: false,
    forges: random.chance(0.2),
  }
  return { ...base, ...wished }
}

/** By how often a client does it. */
export function randomKind(random: Random, kinds: readonly Kind[]): Kind {
  return random.weighted(kinds.map((kind) => [WEIGHTS[kind], kind] as const))
}

export function encodePlan(plan: Plan): string {
  return Buffer.from(JSON.stringify(plan)).toString('base64url')
}

export function decodePlan(header: unknown): Plan {
  return JSON.parse(Buffer.from(String(header), 'base64url').toString()) as Plan
}

export function pathOf({ route, kind, id }: Plan): string {
  return `${route === '' ? '' : `/${route}`}/${kind}?${id.slice(0, 8)}`
}

/** Whether an answer to it has a body at all. */
export function hasBody({ method, status }: Plan): boolean {
  return method !== 'HEAD' && status !== 204 && status !== 304
}

export type Kind = keyof typeof WEIGHTS

const WEIGHTS = {
  get: 30,
  head: 4,
  'no-content': 3,
  'not-modified': 3,
  download: 8,
  'slow-read': 3,
  upload: 8,
  'slow-app': 3,
  trailers: 5,
  echo: 5,
  events: 3,
  policy: 8,
  early: 3,
  'early-close': 2,
  'app-cuts-head': 2,
  'app-cuts-body': 3,
  'app-silent': 1,
  'app-stalls': 1,
  'leaves-in-request': 3,
  'leaves-in-answer': 3,
}

const KINDS: Readonly<Record<Kind, (random: Random) => Partial<Plan>>> = {
  get: () => ({}),
  head: () => ({ method: 'HEAD' }),
  'no-content': () => ({ status: 204, size: 0 }),
  'not-modified': () => ({ status: 304, size: 0 }),
  download: (random) => ({ size: large(random) }),
  'slow-read': (random) => ({ size: random.between(300_000, 900_000), pieceMax: 70_000, readsSlowly: true }),
  upload: (random) => ({ method: 'POST', upload: large(random) }),
  'slow-app': (random) => ({ method: 'POST', upload: random.between(1, 60_000), pieceMax: 5000, pauseMs: 2 }),
  trailers: (random) => ({
    ...{ method: 'POST', uploadIsChunked: true, upload: random.between(1, 9000) },
    ...{ framing: 'chunked', hasTrailers: true },
  }),
  echo: (random) => {
    const bytes = random.between(1, 40_000)
    const shape = { method: 'POST', uploadIsChunked: true, framing: 'chunked', pieceMax: 5000 } as const
    return { ...shape, upload: bytes, size: bytes, fault: 'echo' }
  },
  events: (random) => ({ size: random.between(100, 900), framing: 'chunked', pieceMax: 100, pauseMs: 10 }),
  policy: (random) => ({
    route: random.pick(['pass', 'blocked', 'redirected', 'limited', 'tarpit']),
    size: random.between(0, 300),
  }),
  early: (random) => ({
    ...earlyShape(random),
    framing: random.pick(['length', 'chunked']), // the third closes
    fault: 'early',
  }),
  'early-close': (random) => ({ ...earlyShape(random), fault: 'early-close' }),
  'app-cuts-head': (random) => ({ ...post(random), fault: 'cut-head' }),
  'app-cuts-body': (random) => ({
    ...post(random),
    size: random.between(2, 300_000),
    framing: random.pick(['length', 'chunked']), // the end of a connection is the end of the third, however early
    fault: 'cut-body',
  }),
  'app-silent': () => ({ route: 'impatient', fault: 'silent' }),
  'app-stalls': (random) => ({ route: 'impatient', size: random.between(2, 300_000), fault: 'stalled' }),
  'leaves-in-request': (random) => ({
    ...{ method: 'POST', upload: random.between(1000, 500_000), leaves: 'in-request' },
  }),
  'leaves-in-answer': (random) => ({ size: random.between(1000, 900_000), leaves: 'in-answer' }),
}

function post(random: Random): Partial<Plan> {
  return random.chance(0.5) ? { method: 'POST', upload: random.between(1, 9000) } : {}
}

/** The body is too large to be on its way whole. */
function earlyShape(random: Random): Partial<Plan> {
  return { method: 'POST', upload: random.between(200_000, 2_000_000), status: 413 }
}

function large(random: Random): number {
  return random.weighted([
    [6, random.between(0, 100_000)],
    [3, random.between(100_000, 1_000_000)],
    [1, random.between(1_000_000, 4_000_000)],
  ])
}

const FRAMINGS: readonly (readonly [number, Plan['framing']])[] = [
  [5, 'length'],
  [4, 'chunked'],
  [1, 'close'],
]
const ROUTES: readonly (readonly [number, Route])[] = [
  [7, ''],
  [3, 'h2c'],
]
export const ALL_KINDS = Object.keys(WEIGHTS) as readonly Kind[]
