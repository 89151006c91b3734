import { DEFAULT_APP } from '../../apps/app.ts'
import { reaches } from '../../apps/app-scope.ts'
import { JA4_TYPES } from '../../classify/known/fingerprint-form.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import type { ApiOperation } from '../api/operation.ts'
import { V1 } from '../api/operations.ts'
import { WINDOWS } from '../api/stats-answer.ts'
import { mayDo } from '../http/access/principal.ts'
import type { ApiContext } from '../api/context.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { ask, type ToolCaller } from '../jobs/tools.ts'
import { PROMPT_ARGUMENTS } from './prompts.ts'
import { variablesIn } from './resources.ts'

/** The argument that the user is typing, and its prompt or template. */
interface Completing {
  readonly ref:
    | { readonly type: 'ref/prompt'; readonly name: string }
    | { readonly type: 'ref/resource'; readonly uri: string }
  readonly argument: { readonly name: string; readonly value: string }
  /** The arguments that are already filled in. */
  readonly filled: Readonly<Record<string, string>>
}

interface Completion {
  readonly values: readonly string[]
  readonly hasMore: boolean
}

/**
 * Completes an argument with values that the caller may see. Throws a Refusal if the prompt, template or
 * argument is unknown.
 */
export async function complete(
  { ref, argument, filled }: Completing,
  caller: ToolCaller,
  management: ApiContext,
): Promise<Completion> {
  const { name, value } = argument
  const names = ref.type === 'ref/prompt' ? PROMPT_ARGUMENTS.get(ref.name) : variablesIn(ref.uri)
  if (names === undefined || names.length === 0)
    throw new Refusal('not_found', `unknown ${ref.type === 'ref/prompt' ? 'prompt' : 'resource template'}`)
  if (!names.includes(name))
    throw invalid([{ pointer: '/argument/name', detail: `takes ${names.join(', ')}` }])
  const known = await (COMPLETERS.get(name)?.(value.slice(0, LENGTH_MAX), filled, caller, management) ?? [])
  const begun = value.toLowerCase()
  const values = [...new Set(known)].filter((each) => each.toLowerCase().startsWith(begun))
  return { values: values.slice(0, VALUES_MAX), hasMore: values.length > VALUES_MAX }
}

type Completer = (
  value: string,
  filled: Readonly<Record<string, string>>,
  caller: ToolCaller,
  management: ApiContext,
) => readonly string[] | Promise<readonly string[]>

const agentIds: Completer = async (value, _filled, caller, management) => {
  const query = { limit: '200', ...(value === '' ? {} : { q: value }) }
  const found = await seen(operation('listAgents'), query, caller, management)
  return ((found?.['agents'] ?? []) as readonly { readonly id: string }[]).map(({ id }) => id)
}

const fingerprints: Completer = async (value, filled, caller, management) => {
  const type = JA4_TYPES.find((each) => each === filled['type'])
  const query = {
    limit: '200',
    ...(value === '' ? {} : { q: value }),
    ...(type === undefined ? {} : { type }),
  }
  const found = await seen(operation('listSignatures'), query, caller, management)
  return ((found?.['signatures'] ?? []) as readonly { readonly fingerprint: string }[]).map(
    ({ fingerprint }) => fingerprint,
  )
}

const appIds: Completer = async (_value, _filled, { principal }, { apps }) => {
  if (!mayDo(principal, operation('listApps').scopes)) return []
  const ids = [DEFAULT_APP, ...(await apps.current()).map(({ id }) => id)]
  return ids.filter((id) => reaches(principal.apps, id))
}

const buckets: Completer = (_value, filled) =>
  Object.entries(WINDOWS).find(([window]) => window === (filled['window'] ?? '24h'))?.[1].buckets ?? []

/** `null` if the caller may not see it, or the value is not a valid search. */
async function seen(
  asked: ApiOperation,
  query: Readonly<Record<string, string>>,
  caller: ToolCaller,
  management: ApiContext,
): Promise<Record<string, unknown> | null> {
  if (!mayDo(caller.principal, asked.scopes)) return null
  try {
    return (await ask(asked, { query }, caller, management)) as Record<string, unknown>
  } catch (error) {
    if (error instanceof Refusal && error.code === 'invalid_request') return null
    throw error
  }
}

function operation(id: string): ApiOperation {
  return V1.operations.find((each) => each.id === id)!
}

function choices(values: readonly string[]): Completer {
  return () => values
}

const COMPLETERS: ReadonlyMap<string, Completer> = new Map([
  ['type', choices(JA4_TYPES)],
  ['category', choices(CATEGORIES)],
  ['purpose', choices(PURPOSES)],
  ['unknown_only', choices(['true', 'false'])],
  ['window', choices(Object.keys(WINDOWS))],
  ['bucket', buckets],
  ['agent_id', agentIds],
  ['app_id', appIds],
  ['app', appIds],
  ['fingerprint', fingerprints],
])
const LENGTH_MAX = 200
/** The protocol's limit. */
const VALUES_MAX = 100
