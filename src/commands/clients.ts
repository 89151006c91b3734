import { readFileSync } from 'node:fs'
import { didYouMean } from '../did-you-mean.ts'
import { Fault } from '../fault.ts'
import { COMMAND_LINE } from '../manage/audit.ts'
import {
  AUTH_METHODS,
  type AuthMethod,
  deleteClient,
  GRANT_TYPES,
  type GrantType,
  makeClient,
  type WantedClient,
} from '../manage/auth/oauth/clients.ts'
import { Denials } from '../manage/auth/oauth/denials.ts'
import { PLANS, type Plan, planFor, SCOPES } from '../manage/auth/principal.ts'
import { Refusal } from '../manage/refusal.ts'
import type { OAuthClient } from '../store/oauth-clients.ts'
import type { Store } from '../store/store.ts'
import { USAGE } from './arguments.ts'
import type { Action, Arguments, ExitCode, Group } from './command.ts'
import type { Io } from './io.ts'
import { NAME, scopesIn, timeOf } from './keys.ts'
import { STORE_OPTIONS, withStore } from './store-given.ts'
import { renderTable, visible } from './table.ts'

const JSON_OPTION = { name: 'json', description: 'Print JSON, for a program' }

const create: Action = {
  name: 'create',
  summary: 'Make an OAuth client, and print its secret',
  description: [
    'The secret is all that stands on stdout; the id and what it may do are said on stderr. It is shown here only: what ' +
      'is kept of it is a hash. A client that proves itself with a key of its own, or not at all, has none.',
  ],
  operands: [],
  options: [
    { name: 'name', value: 'NAME', description: 'What it is, in words; up to 100 characters' },
    {
      name: 'scopes',
      value: 'SCOPES',
      description: `What it may ask for, with commas between them: ${SCOPES.join(', ')}`,
    },
    {
      name: 'grants',
      value: 'GRANTS',
      description: `How it gets tokens: ${GRANT_TYPES.join(', ')} (default: client_credentials)`,
    },
    {
      name: 'redirect-uri',
      value: 'URI',
      description: 'Where codes go, character for character; may be repeated',
    },
    {
      name: 'auth-method',
      value: 'METHOD',
      description: 'How it says who it is (default: client_secret_basic, with --jwks private_key_jwt)',
      choices: AUTH_METHODS,
    },
    { name: 'jwks', value: 'FILE', description: 'Its public keys: a JWK Set' },
    {
      name: 'plan',
      value: 'PLAN',
      description: 'How much it may ask for (default: standard; of administrators, unlimited)',
      choices: PLANS,
    },
    JSON_OPTION,
    ...STORE_OPTIONS,
  ],
  examples: [
    { command: 'clients create --name ci --scopes read,detect', description: 'One that asks for itself' },
    {
      command:
        'clients create --name app --scopes read --grants authorization_code,refresh_token --redirect-uri https://app.example/callback',
      description: 'One that asks people',
    },
  ],
  run: runCreate,
}

const list: Action = {
  name: 'list',
  summary: 'List the OAuth clients',
  operands: [],
  options: [JSON_OPTION, ...STORE_OPTIONS],
  examples: [{ command: 'clients list', description: 'Newest first' }],
  run: runList,
}

const remove: Action = {
  name: 'delete',
  summary: 'Delete an OAuth client: within a second its tokens open nothing any more',
  operands: [{ name: 'ID', description: 'Its id, as "clients list" shows it: cli_…' }],
  options: STORE_OPTIONS,
  examples: [{ command: 'clients delete cli_x7c1Jq0aT5b2Lw9k', description: 'For good' }],
  run: runDelete,
}

export const clients: Group = {
  name: 'clients',
  summary: 'Make, list and delete OAuth clients',
  description: ['On the database of a gateway, whether it runs or not.'],
  subcommands: [create, list, remove],
}

async function runCreate(given: Arguments, io: Io): Promise<ExitCode> {
  const wanted = wantedClient(given)
  const { client, secret } = await withStore(given, io, true, (store) =>
    makeClient(store, wanted, COMMAND_LINE, Date.now()),
  ).catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error
    throw new Fault(USAGE, error.message)
  })
  if (given.flag('json')) {
    io.stdout.write(
      `${JSON.stringify({ ...shown(client), ...(secret === null ? {} : { client_secret: secret }) })}\n`,
    )
    return 0
  }
  if (secret !== null) io.stdout.write(`${secret}\n`)
  const { id, name, scopes, grantTypes, plan } = client
  const once = secret === null ? '' : '; the secret is shown here only'
  io.stderr.write(
    `${id}: ${visible(name)}: ${scopes.join(', ')}; by ${grantTypes.join(', ')}; plan ${plan}${once}\n`,
  )
  return 0
}

async function runList(given: Arguments, io: Io): Promise<ExitCode> {
  const all = (await withStore(given, io, false, allClients)).map(shown)
  if (given.flag('json')) {
    io.stdout.write(`${JSON.stringify(all)}\n`)
    return 0
  }
  const columns = [
    { title: 'ID' },
    { title: 'NAME', flexible: true },
    { title: 'SCOPES', flexible: true },
    { title: 'GRANTS', flexible: true },
    { title: 'PLAN' },
    { title: 'CREATED' },
    { title: 'BY' },
  ] as const
  const rows = all.map((each) => [
    ...[each.client_id, each.name, each.scopes.join(','), each.grant_types.join(','), each.plan],
    ...[each.created_at?.slice(0, 16) ?? '', each.origin],
  ])
  io.stdout.write(`${renderTable(columns, rows, io.columns).join('\n')}\n`)
  return 0
}

async function runDelete(given: Arguments, io: Io): Promise<ExitCode> {
  const id = given.operands[0]!
  const { name } = await withStore(given, io, false, async (store) => {
    const found = await store.oauthClients.byId(id)
    const denials = new Denials(store, Date.now)
    if (found === null || !(await deleteClient(store, denials, found, COMMAND_LINE, Date.now())))
      throw new Fault('CLIENT_UNKNOWN', `there is no client ${id}`)
    return found
  })
  io.stderr.write(`${id}: ${visible(name)}: deleted\n`)
  return 0
}

async function allClients(store: Store): Promise<readonly OAuthClient[]> {
  const all: OAuthClient[] = []
  for (let page = 1; ; page++) {
    const { items } = await store.oauthClients.list({ page, limit: PAGE })
    all.push(...items)
    if (items.length < PAGE) return all
  }
}

function wantedClient(given: Arguments): WantedClient {
  const [name, scopeList] = [given.value('name'), given.value('scopes')]
  if (name === null) throw new Fault(USAGE, '--name is missing')
  if (!NAME.test(name)) throw new Fault(USAGE, '--name takes 1 to 100 characters, no control characters')
  if (scopeList === null) throw new Fault(USAGE, '--scopes is missing')
  const scopes = scopesIn(scopeList)
  const jwksFile = given.value('jwks')
  const usual = jwksFile === null ? 'client_secret_basic' : 'private_key_jwt'
  return {
    ...{ name, scopes, origin: 'administrator' },
    grantTypes: grantsIn(given.value('grants') ?? 'client_credentials'),
    redirectUris: [...new Set(given.values('redirect-uri'))],
    authMethod: (given.value('auth-method') as AuthMethod | null) ?? usual,
    jwks: jwksFile === null ? null : jwksIn(jwksFile),
    plan: (given.value('plan') as Plan | null) ?? planFor(scopes),
  }
}

function grantsIn(text: string): readonly GrantType[] {
  const grants = new Set<GrantType>()
  for (const word of text.split(',').map((each) => each.trim())) {
    const grant = GRANT_TYPES.find((each) => each === word)
    if (grant === undefined) {
      const hint = didYouMean(word, GRANT_TYPES)
      throw new Fault(USAGE, `--grants takes ${GRANT_TYPES.join(', ')}, not "${word}"${hint}`)
    }
    grants.add(grant)
  }
  return [...grants]
}

function jwksIn(file: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch (error) {
    throw new Fault(USAGE, `${file} holds no JWK Set`, { cause: error })
  }
  throw new Fault(USAGE, `${file} holds no JWK Set`)
}

function shown(client: OAuthClient) {
  const { id, name, plan, origin, scopes, createdAtMs } = client
  return {
    client_id: id,
    name,
    grant_types: client.grantTypes,
    redirect_uris: client.redirectUris,
    scopes,
    token_endpoint_auth_method: client.authMethod,
    ...{ plan, created_at: timeOf(createdAtMs), origin },
  }
}

const PAGE = 200
