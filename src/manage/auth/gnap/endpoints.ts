import type Koa from 'koa'
import { Fault } from '../../../shared/fault.ts'
import { readBody } from '../../http/body.ts'
import type { RequestContext, RequestState } from '../../http/router.ts'
import { sayPublicDocument } from '../../http/front/public-document.ts'
import type { AuthContext } from '../context.ts'
import { Refusal } from '../../http/refusal.ts'
import { refusalAfterFailure } from '../failures.ts'
import { continueGrant } from './continuation.ts'
import { GRANT_PATH, grantEndpoint } from './gnap.ts'
import { GnapError, gnapErrorOf } from './gnap-error.ts'
import { readGrantRequest } from './grant-request.ts'
import { type GrantApplicant, answerTo, askingClient, checkAsking, type GnapAnswer } from './grants.ts'
import { decidePage, interactPage } from './interact-page.ts'
import { BODY_BYTES_MAX, signedBy } from './signed-request.ts'
import { manageToken } from './token-management.ts'

/**
 * The GNAP discovery document (RFC 9635 §9). Needs no authentication and no database. The returned function
 * answers `false` for any other request.
 */
export function gnapDocuments(publicUrl: string): (ctx: RequestContext) => boolean {
  const text = JSON.stringify({
    grant_request_endpoint: grantEndpoint(publicUrl),
    interaction_start_modes_supported: ['redirect'],
    interaction_finish_methods_supported: ['redirect'],
    key_proofs_supported: ['httpsig'],
    key_rotation_supported: false,
  })
  return (ctx) => {
    const path = pathOf(ctx)
    if (path !== WELL_KNOWN && !(path === GRANT_PATH && ctx.method === 'OPTIONS')) return false
    sayPublicDocument(ctx, text, READS)
    return true
  }
}

/** The GNAP endpoints. `management` returns `null` while the database is not open. */
export function gnapEndpoints(management: () => AuthContext | null): Koa.Middleware<RequestState> {
  return async (ctx, next) => {
    const found = /^\/gnap\/(grant|(?:continue|token|interact|decide)\/([\w-]{1,128}))$/.exec(pathOf(ctx))
    if (found === null) return next()
    ctx.state.operation = 'gnap'
    const [, name = '', id = ''] = found
    const endpoint: GnapEndpoint = ENDPOINTS[name.split('/', 1)[0] as keyof typeof ENDPOINTS]
    try {
      if (!endpoint.methods.includes(ctx.method)) throw notTaken(endpoint.methods)
      const present = management()
      if (present === null) throw unavailable('the database is not open')
      await endpoint.answer(ctx, id, present)
    } catch (error) {
      say(ctx, await told(gnapErrorFor(error), ctx, management()))
    }
  }
}

async function grant(ctx: RequestContext, management: AuthContext): Promise<GnapAnswer> {
  let asking: GrantApplicant | null = null
  const request = await signedBy(
    ctx,
    async ({ client }) => {
      asking = await askingClient(client, management)
      return asking.key
    },
    management,
    async () => readGrantRequest(await readBody(ctx, BODY_BYTES_MAX), management.publicUrl),
    (request) => checkAsking(request, asking!, ctx.state.address, management),
  )
  return answerTo(request, asking!, management)
}

/** Shows errors as a page, because the client is a browser. */
function inBrowser(answer: GnapEndpoint['answer']): GnapEndpoint['answer'] {
  return async (ctx, id, management) => {
    const { people } = management.oauth
    try {
      await answer(ctx, id, management)
    } catch (error) {
      if (people === null) throw error
      const { message, status, headers } = gnapErrorFor(error)
      ctx.set({ ...headers })
      people.refused(ctx, status, message)
    }
  }
}

function answerWith(ctx: RequestContext, answer: GnapAnswer | null): void {
  ctx.status = answer === null ? 204 : 200
  ctx.body = answer
}

/** Counts failed guesses and throttles the address, as the API does. */
async function told(
  error: GnapError,
  ctx: RequestContext,
  management: AuthContext | null,
): Promise<GnapError> {
  if (management === null || !GUESSES.has(error.code)) return error
  const refusal = new Refusal('invalid_token', error.message)
  const told = await refusalAfterFailure(refusal, ctx.state.address, ctx.state.requestId, management)
  return told === refusal
    ? error
    : new GnapError('too_many_attempts', told.message, { headers: told.headers })
}

function say(ctx: RequestContext, { code, message: description, status, headers }: GnapError): void {
  ctx.state.problem = code
  ctx.status = status
  ctx.set({ ...headers })
  ctx.body = { error: { code, description } }
}

/** Rethrows unexpected errors, so that the caller logs them. */
function gnapErrorFor(error: unknown): GnapError {
  if (error instanceof GnapError) return error
  if (error instanceof Refusal) return gnapErrorOf(error)
  if (error instanceof Fault && error.code.startsWith('STORE_'))
    return unavailable('the database is unavailable')
  throw error
}

function unavailable(description: string): GnapError {
  return new GnapError('request_denied', description, { status: 503, headers: { 'Retry-After': '5' } })
}

function notTaken(methods: readonly string[]): GnapError {
  const Allow = methods.join(', ')
  return new GnapError('invalid_request', `allowed methods: ${Allow}`, { status: 405, headers: { Allow } })
}

/** The path as sent. Koa's own `path` throws if the target is not a valid URL. */
function pathOf(ctx: RequestContext): string {
  return ctx.req.url!.split('?', 1)[0]!
}

interface GnapEndpoint {
  readonly methods: readonly string[]
  answer(ctx: RequestContext, id: string, management: AuthContext): Promise<void>
}

const ENDPOINTS = {
  grant: {
    // `gnapDocuments` answers OPTIONS before this endpoint sees it.
    methods: ['POST', 'OPTIONS'],
    answer: async (ctx, _id, management) => answerWith(ctx, await grant(ctx, management)),
  },
  continue: {
    methods: ['POST', 'DELETE'],
    answer: async (ctx, id, management) => answerWith(ctx, await continueGrant(ctx, id, management)),
  },
  token: {
    methods: ['POST', 'DELETE'],
    answer: async (ctx, id, management) => answerWith(ctx, await manageToken(ctx, id, management)),
  },
  interact: { methods: ['GET', 'HEAD'], answer: interactPage },
  decide: { methods: ['GET', 'POST'], answer: inBrowser(decidePage) },
} as const satisfies Record<string, GnapEndpoint>
const WELL_KNOWN = '/.well-known/gnap-as'
const READS = ['GET', 'HEAD', 'OPTIONS']
const GUESSES: ReadonlySet<string> = new Set([
  'invalid_client',
  'invalid_continuation',
  'invalid_interaction',
])
