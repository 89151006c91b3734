import { problemBody } from './problem.ts'
import { PROBLEMS, type ProblemCode, Refusal } from './refusal.ts'
import { STABILITY_HEADER } from './front/stability.ts'
import type { AnyOperation } from './operation.ts'
import type { ApiVersion } from './version.ts'

/** The headers of an answer with this status, as references into the OpenAPI document. */
export function headersOf(
  { method, isIdempotent, query, files }: AnyOperation,
  status: number,
  { isBeta }: ApiVersion,
) {
  const names = isBeta ? ['X-Request-Id', STABILITY_HEADER] : ['X-Request-Id']
  // A caller that is not authenticated has no plan.
  if (![401, 414, 417, 431].includes(status)) names.push('RateLimit-Policy', 'RateLimit')
  if (files !== null && status === 200) names.push('Content-Disposition')
  else if (method === 'GET' && (status === 200 || status === 304)) names.push('ETag', 'Cache-Control')
  if (method === 'GET' && status === 200 && ('page' in query.shape || 'cursor' in query.shape))
    names.push('Link')
  if (isIdempotent && status < 300) names.push('Idempotency-Replayed')
  if (status === 401 || status === 403) names.push('WWW-Authenticate')
  if (status === 429 || status === 503) names.push('Retry-After')
  return Object.fromEntries(names.map((name) => [name, reference('headers', name)]))
}

export function reference(
  kind: 'headers' | 'examples' | 'responses',
  name: string,
): { readonly $ref: string } {
  return { $ref: `#/components/${kind}/${name}` }
}

/** One example for each of these codes. */
export function problemExamples(codes: ReadonlySet<ProblemCode>, { prefix }: ApiVersion) {
  const shown = (Object.keys(PROBLEMS) as ProblemCode[]).filter((code) => codes.has(code))
  return Object.fromEntries(
    shown.map((code) => [
      code,
      {
        summary: PROBLEMS[code].title,
        value: problemBody(
          new Refusal(code, detailOf(code), {
            errors:
              code === 'invalid_request'
                ? [{ pointer: '/limit', detail: 'must be a whole number from 1 to 200' }]
                : [],
          }),
          `${prefix}/agents`,
          '6ff5c1b0-8e0a-4c39-a1b5-2f4f3f1f9d4e',
        ),
      },
    ]),
  )
}

function detailOf(code: ProblemCode): string {
  return code === 'invalid_request' ? 'limit must be a whole number from 1 to 200' : PROBLEMS[code].title
}

/** The definitions of the headers with these names. */
export function headersNamed(names: ReadonlySet<string>, { isBeta }: ApiVersion) {
  const all = isBeta ? { ...HEADERS, ...BETA_HEADERS } : HEADERS
  return Object.fromEntries(Object.entries(all).filter(([name]) => names.has(name)))
}

const HEADERS: Readonly<Record<string, object>> = {
  'X-Request-Id': text(
    'The ID of the request, as sent or newly made. Log lines contain it.',
    '6ff5c1b0-8e0a-4c39',
  ),
  'RateLimit-Policy': text(
    'The limits: `q` requests in a window of `w` seconds. The plan, and for callers that are limited to some apps, the quota of an app that has the fewest requests left.',
    '"standard";q=10000;w=3600, "shop/minute";q=600;w=60',
  ),
  RateLimit: text(
    'For each of these limits: `r` requests are left in the current window, which ends in `t` seconds.',
    '"standard";r=9987;t=1742, "shop/minute";r=598;t=42',
  ),
  ETag: text('The version of the answer. Send it in `If-None-Match`.', '"5Zk1yT0e8cYpGm3wq2xVtA"'),
  'Cache-Control': text(
    'Only the client may cache the answer, and it must revalidate it before each use.',
    'private, no-cache',
  ),
  'Content-Disposition': text('The name of the file.', 'attachment; filename="requests.csv"'),
  Link: text(
    'Links to the first, previous, next and last page (RFC 8288).',
    '<https://gate.example/v1/agents?page=2>; rel="next"',
  ),
  'Idempotency-Replayed': text('The answer is a replay of the first answer.', 'true'),
  'WWW-Authenticate': text('The missing credential or scope (RFC 6750).', 'Bearer realm="gatehouse"'),
  'Retry-After': text('Seconds to wait before the next attempt.', '5'),
}
const BETA_HEADERS: Readonly<Record<string, object>> = {
  Link: text(
    'Links to the first and the next page (RFC 8288).',
    '<https://gate.example/v2/agents?cursor=WyJi>; rel="next"',
  ),
  [STABILITY_HEADER]: text('This version may still change.', 'beta'),
}

function text(description: string, example: string) {
  return { description, schema: { type: 'string' }, example }
}
