import type Koa from 'koa'
import { CARD, DIRECTORY } from '../classify/known/signer-id.ts'
import { a2aEndpoints, isOfA2A } from './a2a/endpoints.ts'
import type { ApiContext } from './api/context.ts'
import { gnapDocuments, gnapEndpoints } from './auth/gnap/endpoints.ts'
import { sayError, unavailable } from './auth/oauth/answer.ts'
import { oauthDocuments } from './auth/oauth/discovery.ts'
import type { OwnSignature } from './auth/own-signature.ts'
import type { RequestContext, RequestState } from './http/router.ts'
import type { ManagementLinks, ManagementSettings } from './management-settings.ts'
import { mcpDocuments } from './mcp/discovery.ts'
import type { McpEndpoint } from './mcp/endpoint.ts'
import { MCP_PATH } from './mcp/offer.ts'
import { dashboard } from './pages/dashboard.ts'
import { documents } from './pages/documents.ts'
import { directoryHeaders, directoryText, ownCardText } from '../identity/keys/own-directory.ts'
import { beginDocument } from './http/front/public-document.ts'
import { Refusal } from './http/refusal.ts'

/** The parts of the management plane that answer requests. */
interface RouteTargets {
  readonly publicUrl: string
  readonly settings: Pick<ManagementSettings, 'version' | 'oauth' | 'openid' | 'hasDashboard'>
  readonly links: Pick<ManagementLinks, 'people' | 'nowMs'>
  readonly ownSignature: OwnSignature
  readonly mcp: McpEndpoint
  /** `null`: the database is not open. */
  open(): OpenTargets | null
  /** Answers a request to the API while the database is not open. */
  refuse(): never
}

/** The targets that need the database. */
interface OpenTargets {
  readonly context: ApiContext
  readonly api: Koa.Middleware<RequestState>
  readonly oauth: Koa.Middleware<RequestState>
}

/** Everything except probes and metrics, by the path of the request. */
export function routes(targets: RouteTargets): Koa.Middleware<RequestState> {
  const { publicUrl, settings, ownSignature, mcp, open } = targets
  const { people, nowMs = Date.now } = targets.links
  const hasPeople = people !== null
  const context = () => open()?.context ?? null
  const ofApi = documents(publicUrl)
  const hasAssertions = settings.openid?.assertions != null && hasPeople
  const hasRegistration = settings.oauth.registration !== 'off' && hasPeople
  const pages = [
    ofApi,
    oauthDocuments(publicUrl, { hasPeople, hasRegistration, hasAssertions }),
    ...(settings.hasDashboard ? [dashboard()] : []),
    gnapDocuments(publicUrl),
    mcpDocuments(publicUrl, settings.version),
  ]
  const gnap = gnapEndpoints(context)
  const a2a = a2aEndpoints(context, hasPeople)
  const api: Koa.Middleware<RequestState> = (ctx, next) => {
    if (ofApi(ctx)) return
    const target = open()
    return target === null ? targets.refuse() : target.api(ctx, next)
  }
  const oauth: Koa.Middleware<RequestState> = (ctx, next) => {
    const target = open()
    return target === null ? sayError(ctx, unavailable()) : target.oauth(ctx, next)
  }
  const table: readonly Route[] = [
    [(url) => isAt(url, DIRECTORY), (ctx) => sayDirectory(ctx, ownSignature, nowMs())],
    [(url) => isAt(url, CARD), (ctx) => sayCard(ctx, ownSignature, nowMs())],
    [(url) => isAt(url, MCP_PATH), (ctx) => mcp.answer(ctx, context())],
    [(url) => url.startsWith('/oauth/') || OF_PEOPLE.test(url), oauth],
    [(url) => url.startsWith('/gnap/'), gnap],
    [isOfA2A, a2a],
  ]
  return (ctx, next) => {
    // Uses the URL as sent. Koa's own `path` throws on invalid URLs and accepts some other input as paths.
    const url = ctx.req.url!
    if (OF_THE_API.test(url)) return api(ctx, next)
    if (pages.some((answers) => answers(ctx))) return
    const [, answer] = table.find(([isOf]) => isOf(url)) ?? []
    return answer === undefined ? next() : answer(ctx, next)
  }
}

type Route = readonly [
  isOf: (url: string) => boolean,
  answer: (ctx: RequestContext, next: Koa.Next) => unknown,
]

function isAt(url: string, path: string): boolean {
  return url === path || url.startsWith(`${path}?`)
}

const OF_PEOPLE = /^\/account(?:[/?]|$)/
const OF_THE_API = /^\/v[12](?:[/?]|$)/

/**
 * The public keys that Gatehouse signs with, for any client. They are signed for the host that Gatehouse is
 * known by: signed for another host, an attacker could present our keys as their own.
 */
function sayDirectory(ctx: RequestContext, { agent, keys }: OwnSignature, nowMs: number): void {
  beginDocument(ctx)
  if (keys === null)
    throw new Refusal(
      'not_found',
      'this installation does not sign requests and has no keys (setting: signing)',
    )
  ctx.body = Buffer.from(directoryText(keys))
  ctx.set(directoryHeaders(keys, new URL(agent).host, Math.floor(nowMs / 1000)))
  ctx.set('Access-Control-Allow-Origin', '*')
  ctx.state.freshSeconds = FRESH_S
}

/** What this installation says about itself as an agent. Signed like the directory. */
function sayCard(ctx: RequestContext, { agent, keys }: OwnSignature, nowMs: number): void {
  beginDocument(ctx)
  if (keys === null)
    throw new Refusal(
      'not_found',
      'this installation does not sign requests and has no card (setting: signing)',
    )
  const card = ownCardText(agent)
  ctx.body = Buffer.from(card)
  ctx.set(directoryHeaders(keys, new URL(agent).host, Math.floor(nowMs / 1000), card))
  ctx.set('Content-Type', 'application/json')
  ctx.set('Access-Control-Allow-Origin', '*')
  ctx.state.freshSeconds = FRESH_S
}

const FRESH_S = 3_600
