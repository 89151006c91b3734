import type { AppRequest } from './app.ts'
import type { Plan } from './plan.ts'

/** What the app was told of the client; it goes back in a header, for the client to judge. */
export interface View {
  readonly ja4: string | null
  readonly http2: string | null
  /** Which policy decided. */
  readonly revision: string | null
  readonly forwardedFor: string | null
  /** Who it is taken for. */
  readonly agent: string | null
}

/** And what it should never have been sent. */
export function appView(request: AppRequest, { route }: Plan): { view: View; problems: readonly string[] } {
  const { headers } = request
  const text = (name: string) => (headers[name] === undefined ? null : String(headers[name]))
  const view = {
    ja4: text('x-ja4-fingerprint'),
    http2: text('x-http2-fingerprint'),
    revision: text('x-agent-revision'),
    forwardedFor: text('x-forwarded-for'),
    agent: text('x-agent-name'),
  }
  const problems: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (String(value).includes(FORGED)) problems.push(`a forged ${name} came through`)
    if (HOP_BY_HOP.has(name) && request.httpVersion === '2.0') problems.push(`${name} in HTTP/2`)
    if (route === 'pass' && OURS.test(name)) problems.push(`${name} where there should be none`)
  }
  if (route !== 'pass' && view.ja4 === null) problems.push('no JA4')
  if (text('cookie') !== 'a=1; b=2') problems.push(`a cookie of ${text('cookie')}`)
  return { view, problems }
}

/** A value that only a client says. */
export const FORGED = 'forged-by-client'
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade'])
const OURS = /^x-(?:agent|ja4)/
