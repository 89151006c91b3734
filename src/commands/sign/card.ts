import type { AgentCard } from '../../classify/known/claims/agent-card.ts'
import { cardKind } from '../../identity/cards/registries.ts'
import { Documents } from '../../identity/fetch/document-fetch.ts'
import { type DocumentRules, documentPlaceOf, readAgentId } from '../../identity/keys/agent-document.ts'
import { KeySources } from '../../identity/verify/key-directories.ts'
import { loadSoftware } from '../../runtime/signatures/signature-files.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { Fault } from '../../shared/fault.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { Arguments, CommandAction, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'
import { visible } from '../../terminal/table.ts'

export const card: CommandAction = {
  name: 'card',
  summary: 'Fetch the signature agent card of an agent, and show how it is read',
  description: [
    'AGENT is the URL of a card, the origin of an agent, or the id or an alias of an agent in the signatures. Fetches with ' +
      'the same protections as the gateway. Exit code 0: there is a card.',
  ],
  operands: [{ name: 'AGENT', description: 'A URL, or the id of an agent' }],
  options: [
    {
      name: 'from',
      value: 'FILE',
      description: 'A file or folder of signatures instead of the built-in ones; may be repeated',
    },
    { name: 'allow-private', description: 'Allow cards at private addresses and http://, for tests' },
    JSON_OPTION,
  ],
  examples: [
    { command: 'card https://agent.example', description: 'The card in its key directory' },
    { command: 'card https://agent.example/bot --json', description: 'The card at this URL, for a program' },
    { command: 'card chatgpt-agent', description: 'The card of an agent in the signatures' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const rules = { allowPrivate: given.flag('allow-private') }
  const signer = await signerOf(given.operands[0]!, given.values('from'), rules)
  const url = documentPlaceOf(signer)
  const settings = { ...rules, nowMs: Date.now }
  const cards = new Documents(cardKind(rules), settings)
  const sources = new KeySources(settings)
  const read = await outcome(cards.get(url))
  const keys = await outcome(sources.find(signer, null))
  const found = typeof read === 'string' ? null : read.card
  const why = typeof read === 'string' ? read : found === null ? `${url} has only keys` : null
  const directory = typeof keys === 'string' ? null : keys.document
  const thumbprints = directory?.keys.map(({ thumbprint }) => thumbprint) ?? []
  const whyNoKeys = typeof keys === 'string' ? keys : null
  if (given.flag('json')) printJson(io, { url, card: found, why, keys: thumbprints, why_no_keys: whyNoKeys })
  else {
    const facts = [
      ['url', url] as const,
      ...(found === null ? [['card', `none: ${why}`] as const] : factsOf(found)),
    ]
    const keysText =
      directory === null ? `none: ${whyNoKeys}` : `${thumbprints.join(', ')} at ${directory.url}`
    for (const [name, value] of [...facts, ['keys', keysText] as const])
      io.stdout.write(`${name.padEnd(NAME_COLUMNS)}${visible(value)}\n`)
  }
  return found === null ? 1 : 0
}

/** What was found; a text: why nothing was. */
async function outcome<Found>(finding: Promise<Found>): Promise<Found | string> {
  try {
    return await finding
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
}

async function signerOf(agent: string, from: readonly string[], rules: DocumentRules): Promise<string> {
  const named = agent.includes('://') ? agent : await directoryOf(agent, from)
  const read = readAgentId(named, rules)
  if ('refused' in read) throw new Fault(USAGE, `${named} ${read.refused}`)
  return read.id
}

/** The key directory of an agent in the signatures. */
async function directoryOf(agent: string, from: readonly string[]): Promise<string> {
  const list = await loadSoftware(from.length === 0 ? null : from, () => false)
  const found = list.find(({ id }) => id === agent) ?? list.find(({ aliases }) => aliases.includes(agent))
  if (found === undefined) {
    const near = didYouMean(
      agent,
      list.map(({ id }) => id),
    )
    throw new Fault(USAGE, `unknown agent "${agent}"${near}; give its id in the signatures, or a URL`)
  }
  const { signatureAgent } = found.verification
  if (signatureAgent !== null) return signatureAgent
  throw new Fault('CARD_UNKNOWN', `the signatures name no key directory of ${found.id}; give its URL`)
}

function factsOf(read: AgentCard): readonly (readonly [name: string, value: string])[] {
  const facts: readonly (readonly [name: string, value: string | null])[] = [
    ['name', read.name],
    ['homepage', read.homepage],
    ['contacts', read.contacts.join(', ')],
    ['purpose', read.purpose.join(', ')],
    ['in policies', read.purposes.join(', ')],
    ['trigger', read.trigger],
    ['robots.txt', read.keepsRobots ? 'says that it keeps to it' : 'does not say that it keeps to it'],
    ['robots token', read.robotsToken],
    ['user agents', read.userAgents.join(', ')],
    ['content', read.content],
    ['rate control', read.rateControl],
    ['rate', read.rateExpectation],
    ['known urls', read.knownUrls.join(', ')],
    ['ranges at', read.rangesUrl],
    ['ignored', read.ignored.join('; ')],
  ]
  return facts.filter((fact): fact is readonly [string, string] => fact[1] !== null && fact[1] !== '')
}

const NAME_COLUMNS = 14
