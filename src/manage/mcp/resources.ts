import { reaches } from '../../apps/app-scope.ts'
import type { ApiContext } from '../api/context.ts'
import type { ApiOperation } from '../api/operation.ts'
import { openApiDocument } from '../api/openapi.ts'
import { V1, V2 } from '../api/operations.ts'
import type { ApiVersion } from '../http/version.ts'
import { mayDo, type Principal, type Scope } from '../http/access/principal.ts'
import { isInReach, type Reach } from '../http/access/reach.ts'
import { Refusal } from '../http/refusal.ts'
import { ask, type OperationArguments, type ToolCaller } from '../jobs/tools.ts'

/** A resource, usually backed by an operation of the API. */
interface McpResource {
  readonly name: string
  readonly title: string
  readonly description: string
  /** `null` if the resource exists only as a template. */
  readonly uri: string | null
  /** An RFC 6570 template; `null` if there is only one resource. */
  readonly template: string | null
  /** The caller needs one of these. */
  readonly scopes: readonly Scope[]
  readonly reach: Reach
  /** The app that it is about. Missing: none. */
  readonly appAt?: (place: Place) => string
  readonly read: (place: Place, caller: ToolCaller, management: ApiContext) => Promise<unknown>
}

/** The part of the URI after its first name. */
interface Place {
  readonly segments: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

/** The resource at a URI, or `null`. */
export function resourceAt(uri: string): { readonly resource: McpResource; readonly place: Place } | null {
  const url = URL.parse(uri)
  if (url === null || url.protocol !== SCHEME || url.hash !== '' || url.username !== '' || url.port !== '')
    return null
  const segments = url.pathname === '' ? [] : url.pathname.slice(1).split('/').map(decoded)
  if (segments.some((segment) => segment === null || segment === '')) return null
  const resource = RESOURCES.find(({ uri, template }) => {
    const names = namesIn(uri ?? template!)
    return isAt(names, [url.hostname, ...(segments as string[])])
  })
  const query = [...url.searchParams]
  if (resource === undefined || new Set(query.map(([name]) => name)).size < query.length) return null
  if (query.length > 0 && !(resource.template ?? '').includes('{?')) return null
  return { resource, place: { segments: segments as string[], query: Object.fromEntries(query) } }
}

/** Throws a Refusal if the resource is about an app that the caller may not see: changes of it are nothing to the caller. */
export function checkSubscription(uri: string, { apps }: Principal): void {
  const found = resourceAt(uri)
  const app = found?.resource.appAt?.(found.place)
  if (app !== undefined && !reaches(apps, app)) throw notThere(uri)
}

/** Throws a Refusal if the resource does not exist, or the caller may not see it. */
export async function readResource(
  uri: string,
  caller: ToolCaller,
  management: ApiContext,
): Promise<unknown> {
  const found = resourceAt(uri)
  if (found === null) throw notThere(uri)
  const { resource, place } = found
  if (!mayDo(caller.principal, resource.scopes))
    throw new Refusal('insufficient_scope', `${uri} needs the scope ${resource.scopes.join(' or ')}`)
  return resource.read(place, caller, management)
}

interface ListedResource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly description: string
  readonly mimeType: string
}

interface ResourcePart {
  readonly resources: readonly ListedResource[]
  readonly nextCursor: string | null
}

/**
 * The resources that the caller may read: first the fixed ones, then every agent. The cursor is that of the
 * list of agents.
 */
export async function listResources(
  cursor: string | null,
  caller: ToolCaller,
  management: ApiContext,
): Promise<ResourcePart> {
  const fixed = cursor === null ? RESOURCES.filter((each) => mayRead(caller.principal, each)) : []
  const listed = fixed.flatMap((each) => (each.uri === null ? [] : [shown(each, each.uri)]))
  if (!mayDo(caller.principal, LIST_AGENTS.scopes)) return { resources: listed, nextCursor: null }
  const query = cursor === null ? {} : { cursor }
  const { agents, next_cursor } = (await ask(LIST_AGENTS, { query }, caller, management)) as AgentPart
  return { resources: [...listed, ...agents.map(shownAgent)], nextCursor: next_cursor }
}

export function listTemplates({ principal }: { readonly principal: Principal }) {
  return RESOURCES.flatMap((each) => {
    if (each.template === null || !mayRead(principal, each)) return []
    const { uri: _, ...described } = shown(each, '')
    return [{ uriTemplate: each.template, ...described }]
  })
}

function mayRead(principal: Principal, { scopes, reach }: McpResource): boolean {
  return mayDo(principal, scopes) && isInReach(principal, reach)
}

/** The variables of a template; empty if the template is unknown. */
export function variablesIn(template: string): readonly string[] {
  if (!RESOURCES.some((each) => each.template === template)) return []
  return [...template.matchAll(/\{\??([\w,]+)\}/g)].flatMap(([, names]) => names!.split(','))
}

/** The response of `ask`, which the operation's own schema describes. */
interface AgentPart {
  readonly agents: readonly { readonly id: string; readonly name: string; readonly description: string }[]
  readonly next_cursor: string | null
}

function shownAgent({ id, name, description }: AgentPart['agents'][number]): ListedResource {
  return {
    uri: `gatehouse://agents/${encodeURIComponent(id)}`,
    name: id,
    title: name,
    description: description === '' ? `Facts about ${name}.` : description,
    mimeType: JSON_TYPE,
  }
}

function shown({ name, title, description }: McpResource, uri: string): ListedResource {
  return { uri, name, title, description, mimeType: JSON_TYPE }
}

function named({ operations }: ApiVersion<ApiContext>, id: string): ApiOperation {
  const found = operations.find((each) => each.id === id)
  if (found === undefined) throw new Error(`there is no operation ${id}`)
  return found
}

/** A resource that an operation answers. */
function asking(
  operation: ApiOperation,
  described: Omit<McpResource, 'scopes' | 'reach' | 'read'>,
  asked: (place: Place) => OperationArguments = ({ query }) => ({ query }),
): McpResource {
  const read: McpResource['read'] = (place, caller, management) =>
    ask(operation, asked(place), caller, management)
  return { ...described, scopes: operation.scopes, reach: operation.reach, read }
}

function notThere(uri: string): Refusal {
  return new Refusal('not_found', `resource ${uri} not found`)
}

/** The names of a URI or template after its scheme: `agents`, `{agent_id}`. */
function namesIn(uri: string): readonly string[] {
  return uri
    .replace(/\{\?.*$/, '')
    .split('/')
    .slice(2)
}

function isAt(names: readonly string[], segments: readonly string[]): boolean {
  return (
    names.length === segments.length &&
    names.every((name, at) => name.startsWith('{') || name === segments[at])
  )
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}

export function appPolicyUri(app: string): string {
  return `gatehouse://apps/${app}/policy`
}

export const POLICY_URI = 'gatehouse://policy'
const SCHEME = 'gatehouse:'
const JSON_TYPE = 'application/json'
// Uses the lists of the beta API, because they have cursors.
const LIST_AGENTS = named(V2, 'listAgents')
const LOOK_UP = named(V1, 'lookupFingerprint')
/** Caches the OpenAPI document, which is slow to make. */
const DOCUMENTS = new WeakMap<ApiContext, unknown>()

const RESOURCES: readonly McpResource[] = [
  asking(LIST_AGENTS, {
    name: 'agents',
    title: 'Known agents',
    description: 'Ordered by id. `next_cursor` leads to the next page.',
    uri: 'gatehouse://agents',
    template: 'gatehouse://agents{?category,purpose,q,seen_since,limit,cursor}',
  }),
  asking(
    named(V1, 'getAgent'),
    {
      name: 'agent',
      title: 'An agent',
      description: 'One agent, by its id.',
      uri: null,
      template: 'gatehouse://agents/{agent_id}',
    },
    ({ segments: [agent_id] }) => ({ params: { agent_id: agent_id! } }),
  ),
  asking(named(V2, 'listSignatures'), {
    name: 'signatures',
    title: 'Known signatures',
    description:
      'Newest first, each with its evidence. With `unknown_only=true`, the fingerprints on live traffic that no agent is named for. `next_cursor` leads to the next page.',
    uri: 'gatehouse://signatures',
    template: 'gatehouse://signatures{?type,agent_id,unknown_only,q,min_confidence,sort,limit,cursor}',
  }),
  {
    name: 'signature',
    title: 'A fingerprint',
    description: 'The software known to have it. `type` is ja4, ja4s, ja4h or ja4x.',
    uri: null,
    template: 'gatehouse://signatures/{type}/{fingerprint}',
    scopes: LOOK_UP.scopes,
    reach: LOOK_UP.reach,
    read: async ({ segments: [type, fingerprint] }, caller, management) => {
      const found = await ask(LOOK_UP, { query: { [type!]: fingerprint! } }, caller, management)
      if (Array.isArray(found) && found.length === 0)
        throw new Refusal('not_found', `no signature has the ${type} ${fingerprint}`)
      return { signatures: found }
    },
  },
  asking(named(V1, 'getStats'), {
    name: 'statistics',
    title: 'Statistics',
    description: 'Counts of requests, agents and fingerprints. `window` is 1h, 24h, 7d or 30d.',
    uri: 'gatehouse://statistics',
    template: 'gatehouse://statistics{?window,bucket,app}',
  }),
  {
    name: 'openapi',
    title: 'The API',
    description: 'The OpenAPI document of /v1.',
    uri: 'gatehouse://openapi',
    template: null,
    scopes: ['mcp'],
    reach: 'shared',
    read: async (_place, _caller, management) => {
      const document = DOCUMENTS.get(management) ?? openApiDocument(V1, management.publicUrl)
      DOCUMENTS.set(management, document)
      return document
    },
  },
  asking(named(V1, 'getPolicy'), {
    name: 'policy',
    title: 'The policy',
    description:
      'The rules in force, their origin, and since when they are in force. Only for administrators.',
    uri: POLICY_URI,
    template: null,
  }),
  asking(named(V2, 'listApps'), {
    name: 'apps',
    title: 'Apps',
    description: 'The apps behind the proxies, by id. `next_cursor` leads to the next page.',
    uri: 'gatehouse://apps',
    template: 'gatehouse://apps{?team,limit,cursor}',
  }),
  asking(
    named(V1, 'getAppPolicy'),
    {
      name: 'app_policy',
      title: 'The policy of an app',
      description:
        'The rules of an app, which are tried between the `first` and `last` rules of the policy. `default` is the app of requests that match no other. Only for administrators.',
      uri: null,
      template: appPolicyUri('{app_id}'),
      appAt: ({ segments: [app_id] }) => app_id!,
    },
    ({ segments: [app_id] }) => ({ params: { app_id: app_id! } }),
  ),
]
