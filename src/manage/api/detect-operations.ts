import { setImmediate as turn } from 'node:timers/promises'
import * as z from 'zod'
import { type Detection, detect, judgedIn } from '../judging/detection.ts'
import type { ApiContext } from './context.ts'
import { type FieldError, invalid, Refusal } from '../http/refusal.ts'
import { ITEMS_MAX, SLICE_MS } from '../jobs/task-types.ts'
import { detectionRequest, detectionResult } from './detect.ts'
import { type ApiOffered, type ApiVersioned, operation } from './operation.ts'
import { validated } from '../http/validate.ts'

const EXAMPLE: z.output<typeof detectionResult> = {
  is_agent: true,
  confidence: 0.9971,
  agent_name: 'GPTBot',
  agent_category: 'crawler',
  fingerprints: {
    ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1',
    ja4s: '',
    ja4h: 'ge11nn020000_9ed1ff1f7b03_000000000000_000000000000',
  },
  agent_purpose: ['training'],
  name_confidence: 0.5,
  agent_id: 'gptbot',
  verified: null,
  proof: null,
  conflicts: [],
  verdict: 'agent',
  software: { id: 'gptbot', name: 'GPTBot', kind: 'agent' },
  evidence: [{ kind: 'names-agent', detail: 'the User-Agent names GPTBot', weight: 3.98 }],
  request_id: '5f0c9f0e-6d1b-4c36-8f7c-2d9a3f6a7b10',
}
const detecting = {
  id: 'detectAgent',
  method: 'POST' as const,
  path: '/detect' as const,
  tag: 'Detection' as const,
  summary: 'Detect the sender of a request',
  scopes: ['detect'] as const,
  reach: 'shared' as const,
  problems: ['unavailable'] as const,
  examples: {
    body: {
      user_agent: 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)',
      ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1',
      headers: {
        'User-Agent': 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)',
        Accept: '*/*',
      },
    },
    answer: EXAMPLE,
  },
}
const DESCRIPTION =
  'Judges the given request with the same code and signatures as the proxy. The result and its fingerprints are kept for a while, so that feedback can refer to them. The address is the only proof of identity that is checked: a signature covers one live request, so it is not checked here.'

/** Each item is validated in its turn: thousands at once would block all other requests. */
const detectionRequests = z
  .array(
    z
      .unknown()
      .meta({ override: { $ref: '#/components/schemas/DetectionRequest' } }) as z.ZodType as z.ZodType<
      z.input<typeof detectionRequest>
    >,
  )
  .min(1, 'is empty')
  .max(ITEMS_MAX, `has more than ${ITEMS_MAX.toLocaleString('en')} requests`)
  .meta({ id: 'DetectionRequestList' })
const detectionResults = z.array(detectionResult).meta({ id: 'DetectionResultList' })
const oneOrAll: z.ZodType<Detected | readonly Detected[]> = z.union([detectionResult, detectionResults])

const detectAgent: ApiVersioned = {
  v1: operation({
    ...detecting,
    description: DESCRIPTION,
    body: detectionRequest,
    answer: detectionResult,
    run: ({ body, requestId }, management) => ({ body: detected(body, requestId, management) }),
  }),
  v2: operation({
    ...detecting,
    description: `${DESCRIPTION}

A list of up to ${ITEMS_MAX.toLocaleString('en')} requests is answered with a list in the same order, and each result has its own \`request_id\`. If one request is invalid, the whole list is rejected.`,
    body: z.union([detectionRequest, detectionRequests]),
    answer: oneOrAll,
    run: async ({ body, requestId }, management) =>
      Array.isArray(body)
        ? { body: await detectedAll(body, requestId, management) }
        : { body: detected(body, requestId, management) },
  }),
}

export const DETECT_OPERATIONS: readonly ApiOffered[] = [detectAgent]

type Request = z.output<typeof detectionRequest>
type Detected = Detection & { readonly request_id: string }

function detected(request: Request, requestId: string, management: ApiContext): Detected {
  const detection = detect(request, management)
  management.detections.keep(requestId, judgedIn(request, detection))
  return { ...detection, request_id: requestId }
}

/** Returns all results, or throws a Refusal that names the invalid items. */
async function detectedAll(given: readonly unknown[], requestId: string, management: ApiContext) {
  const requests: Request[] = []
  const errors: FieldError[] = []
  await inTurns(given, (each, index) => {
    if (errors.length >= ERRORS_MAX) return
    const read = readOne(each, index)
    if ('errors' in read) errors.push(...read.errors)
    else requests.push(read.request)
  })
  const [first, ...others] = errors.slice(0, ERRORS_MAX)
  if (first !== undefined) throw invalid([first, ...others])
  // Feedback does not accept a longer id.
  const start = requestId.slice(0, REQUEST_ID_LENGTH_MAX - `.${ITEMS_MAX}`.length)
  const results: Detected[] = []
  await inTurns(requests, (each, index) => results.push(detected(each, `${start}.${index}`, management)))
  return results
}

function readOne(
  given: unknown,
  index: number,
): { readonly request: Request } | { readonly errors: readonly FieldError[] } {
  try {
    return { request: validated(detectionRequest, given, 'body') }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { errors: error.errors.map(({ pointer, detail }) => ({ pointer: `/${index}${pointer}`, detail })) }
  }
}

/** Pauses between slices of work, so that other requests wait no longer than a few milliseconds. */
async function inTurns<Item>(items: readonly Item[], work: (item: Item, index: number) => void) {
  let startMs = performance.now()
  for (const [index, item] of items.entries()) {
    work(item, index)
    if (performance.now() - startMs < SLICE_MS) continue
    await turn()
    startMs = performance.now()
  }
}

const REQUEST_ID_LENGTH_MAX = 128
/** A longer list does not help the client. */
const ERRORS_MAX = 100
