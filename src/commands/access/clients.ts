import { ALL_APPS } from '../../apps/app-scope.ts'
import { Fault } from '../../shared/fault.ts'
import { COMMAND_LINE } from '../../manage/http/audit.ts'
import {
  AUTH_METHODS,
  type AuthMethod,
  deleteClient,
  GRANT_TYPES,
  type GrantType,
  makeClient,
  type WantedClient,
} from '../../manage/auth/oauth/clients.ts'
import { Denials } from '../../manage/auth/oauth/denials.ts'
import { PLANS, type Plan, planFor, SCOPES } from '../../manage/http/access/principal.ts'
import { Refusal } from '../../manage/http/refusal.ts'
import type { OAuthClient } from '../../store/people/oauth-clients.ts'
import {
  APP_OPTION,
  appsIn,
  appsText,
  limitText,
  nameIn,
  scopesIn,
  timeText,
  wordsIn,
} from './access-options.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode, Group } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION } from '../../terminal/json-option.ts'
import { printRecords } from '../record/record-list.ts'
import { configGiven, STORE_OPTIONS, withStore } from '../../runtime/store-given.ts'
import { visible } from '../../terminal/table.ts'
import { readBoundedSync } from '../../shared/bounded-file.ts'

const create: CommandAction = {
  name: 'create',
  summary: 'Create an OAuth client, and print its secret',
  description: [
    'Prints the secret on stdout; the id and the scopes go to stderr. The secret is shown only once: Gatehouse stores a ' +
      'hash of it. A client that authenticates with its own key (--jwks), or a public client, has no secret.',
  ],
  operands: [],
  options: [
    { name: 'name', value: 'NAME', description: 'A name for people to read; up to 100 characters' },
    {
      name: 'scopes',
      value: 'SCOPES',
      description: `The scopes it may request, separated by commas: ${SCOPES.join(', ')}`,
    },
    APP_OPTION,
    {
      name: 'grants',
      value: 'GRANTS',
      description: `How it gets tokens: ${GRANT_TYPES.join(', ')} (default: client_credentials)`,
    },
    {
      name: 'redirect-uri',
      value: 'URI',
      description: 'An exact redirect URI; may be repeated',
    },
    {
      name: 'auth-method',
      value: 'METHOD',
      description: 'How it authenticates (default: client_secret_basic, with --jwks private_key_jwt)',
      choices: AUTH_METHODS,
    },
    { name: 'jwks', value: 'FILE', description: 'Its public keys: a JWK Set' },
    {
      name: 'plan',
      value: 'PLAN',
      description: 'Its rate limit (default: standard; for administrators, unlimited)',
      choices: PLANS,
    },
    JSON_OPTION,
    ...STORE_OPTIONS,
  ],
  examples: [
    {
      command: 'clients create --name ci --scopes read,detect',
      description: 'A client that acts for itself',
    },
    {
      command:
        'clients create --name app --scopes read --grants authorization_code,refresh_token --redirect-uri https://app.example/callback',
      description: 'A client that acts for users',
    },
  ],
  run: runCreate,
}

const list: CommandAction = {
  name: 'list',
  summary: 'List the OAuth clients',
  operands: [],
  options: [JSON_OPTION, ...STORE_OPTIONS],
  examples: [{ command: 'clients list', description: 'Newest first' }],
  run: runList,
}

const remove: CommandAction = {
  name: 'delete',
  summary: 'Delete an OAuth client and revoke its tokens within a second',
  operands: [{ name: 'ID', description: 'Its id, as "clients list" shows it: cli_…' }],
  options: STORE_OPTIONS,
  examples: [{ command: 'clients delete cli_x7c1Jq0aT5b2Lw9k', description: 'Permanently' }],
  run: runDelete,
}

export const clients: Group = {
  name: 'clients',
  summary: 'Create, list and delete OAuth clients',
  description: ['Works on the database of a gateway, whether the gateway runs or not.'],
  subcommands: [create, list, remove],
}

async function runCreate(given: Arguments, io: Io): Promise<ExitCode> {
  const wanted = wantedClient(given)
  const { client, secret } = await withStore(given, io, true, async (store) => {
    const apps = await appsIn(given, store, configGiven(given, io).apps)
    return makeClient(store, { ...wanted, apps }, COMMAND_LINE, Date.now())
  }).catch((error: unknown) => {
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
  const { id, name, scopes, apps, grantTypes, plan } = client
  const once = secret === null ? '' : '; the secret is shown here only'
  io.stderr.write(
    `${id}: ${visible(name)}: ${scopes.join(', ')}${limitText(apps)}; by ${grantTypes.join(', ')}; plan ${plan}${once}\n`,
  )
  return 0
}

function runList(given: Arguments, io: Io): Promise<ExitCode> {
  return printRecords(given, io, {
    columns: [
      { title: 'ID' },
      { title: 'NAME', flexible: true },
      { title: 'SCOPES', flexible: true },
      { title: 'APPS', flexible: true },
      { title: 'GRANTS', flexible: true },
      { title: 'PLAN' },
      { title: 'CREATED' },
      { title: 'BY' },
    ],
    page: (store, page) => store.oauthClients.list(page, ALL_APPS),
    shown,
    row: (each) => [
      each.client_id,
      each.name,
      each.scopes.join(','),
      appsText(each.apps),
      each.grant_types.join(','),
      each.plan,
      each.created_at?.slice(0, 16) ?? '',
      each.origin,
    ],
  })
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

function wantedClient(given: Arguments): Omit<WantedClient, 'apps'> {
  const [name, scopes] = [nameIn(given), scopesIn(given)]
  const jwksFile = given.value('jwks')
  const usual = jwksFile === null ? 'client_secret_basic' : 'private_key_jwt'
  return {
    name,
    scopes,
    origin: 'administrator',
    grantTypes: wordsIn<GrantType>(given.value('grants') ?? 'client_credentials', '--grants', GRANT_TYPES),
    redirectUris: [...new Set(given.values('redirect-uri'))],
    authMethod: (given.value('auth-method') as AuthMethod | null) ?? usual,
    jwks: jwksFile === null ? null : jwksIn(jwksFile),
    plan: (given.value('plan') as Plan | null) ?? planFor(scopes),
  }
}

function jwksIn(file: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(readBoundedSync(file).toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch (error) {
    throw new Fault(USAGE, `${file} holds no JWK Set`, { cause: error })
  }
  throw new Fault(USAGE, `${file} holds no JWK Set`)
}

function shown(client: OAuthClient) {
  const { id, name, plan, origin, scopes, apps, createdAtMs } = client
  return {
    client_id: id,
    name,
    grant_types: client.grantTypes,
    redirect_uris: client.redirectUris,
    scopes,
    apps,
    token_endpoint_auth_method: client.authMethod,
    plan,
    created_at: timeText(createdAtMs),
    origin,
  }
}
