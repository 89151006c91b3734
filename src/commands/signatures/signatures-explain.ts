import { AddressLists } from '../../classify/known/address-lists.ts'
import type { PublishedRanges } from '../../classify/known/published-ranges.ts'
import {
  FINGERPRINT_TYPES,
  type FingerprintPattern,
  type FingerprintSignature,
  type FingerprintType,
  isFingerprint,
  type Signature,
} from '../../classify/known/signature.ts'
import type { PurposeSource, Software } from '../../classify/known/software.ts'
import { type ClaimKind, UserAgentIndex } from '../../classify/known/user-agent.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { Address, AddressRanges, parseAddressRange } from '../../wire/address-ranges.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION, printJson } from '../../terminal/json-option.ts'
import { loadSoftware } from '../../runtime/signatures/signature-files.ts'
import type { Keeps } from '../../runtime/signatures/signature-lines.ts'
import { type Column, renderTable, visible } from '../../terminal/table.ts'

export const explainSignatures: CommandAction = {
  name: 'explain',
  summary: 'Show what is known about a software, a fingerprint, an address or a User-Agent',
  description: [
    'For the id or an alias of a software: everything about it, with the origin and date of each signature. For a JA4, ' +
      'stable key, JA4S, JA4H, JA4X or HTTP/2 fingerprint: its owners and their shares, and the owners of its parts. For ' +
      'an address: the agents that publish it. Any other text is taken as a User-Agent: the software it names, and why.',
  ],
  operands: [{ name: 'TEXT', description: 'What to explain; several words form one text', many: true }],
  options: [
    {
      name: 'from',
      value: 'FILE',
      description: 'A file or folder of signatures instead of the built-in ones; may be repeated',
    },
    JSON_OPTION,
  ],
  examples: [
    { command: 'signatures explain curl', description: 'Everything about curl' },
    {
      command: 'signatures explain t13d5212h1_b262b3658495_8e6e362c5eac',
      description: 'The owners of this JA4, or of a part of it',
    },
    { command: 'signatures explain 66.249.66.1', description: 'The agents with this address' },
    {
      command: 'signatures explain "Mozilla/5.0 (compatible; GPTBot/1.3)"',
      description: 'The agent it names',
    },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const from = given.values('from')
  const text = given.operands.join(' ')
  const list = await loadSoftware(from.length === 0 ? null : from, keepsFor(text))
  const parts = explained(list, text)
  if (given.flag('json')) printJson(io, { text, parts: parts.map(jsonOf) })
  else for (const line of parts.flatMap(linesOf)) io.stdout.write(`${line}\n`)
  return 0
}

/** One part of the explanation. */
interface Part {
  /** Sentences before the table. */
  readonly said: readonly string[]
  readonly facts: readonly (readonly [name: string, value: string])[]
  /** A title that starts with `>` marks a column of numbers. */
  readonly titles: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Text if there are no rows. */
  readonly none: string
}

function jsonOf({ said, facts, titles, rows }: Part): object {
  const names = titles.map((title) => title.replace('>', '').toLowerCase().replaceAll(' ', '_'))
  return {
    said,
    ...(facts.length > 0 && { facts: Object.fromEntries(facts) }),
    rows: rows.map((row) => Object.fromEntries(row.map((cell, at) => [names[at]!, cell]))),
  }
}

function linesOf({ said, facts, titles, rows, none }: Part, at: number): readonly string[] {
  const known = facts.map(([name, value]) => `${name.padEnd(FACT_COLUMNS)}${visible(value)}`)
  return [
    ...(at > 0 && facts.length === 0 ? [''] : []),
    ...said,
    ...known,
    ...(known.length > 0 ? [''] : []),
    ...table(titles, rows, none),
  ]
}

/** Reads only the needed entries of long lists. */
function keepsFor(text: string): Keeps {
  const types = typesOf(text)
  if (types.length === 0) return ({ id, aliases }) => id === text || aliases.includes(text)
  return (software, signature) => {
    if (!types.includes(signature.type)) return false
    const { isWhole, shared } = compared(software, signature, text)
    return isWhole || shared.length > 0
  }
}

/** With `*` for some parts, a text may match several types. */
function typesOf(text: string): readonly FingerprintType[] {
  return FINGERPRINT_TYPES.filter((type) => isFingerprint(type, text))
}

function explained(list: readonly Software[], text: string): readonly Part[] {
  const byId = list.filter(({ id }) => id === text)
  const named = byId.length > 0 ? byId : list.filter(({ aliases }) => aliases.includes(text))
  if (named.length > 0) return named.map(softwarePart)
  const address = new Address()
  address.read(text)
  if (address.family !== 0) return [addressPart(list, address)]
  const types = typesOf(text)
  return types.length > 0
    ? types.flatMap((type) => fingerprintParts(list, { type, value: text }))
    : [userAgentPart(list, text)]
}

function purposeText(purpose: string, { source, date }: PurposeSource): string {
  return `${purpose}, from ${source} as of ${date}`
}

function softwarePart(software: Software): Part {
  const { verification } = software
  const facts: readonly (readonly [string, string | null])[] = [
    ['id', software.id],
    ['name', software.name],
    ['kind', software.kind],
    ['category', software.category],
    ...software.purposes.map(
      (purpose, i) => ['purpose', purposeText(purpose, software.purposeSources[i]!)] as const,
    ),
    ['vendor', software.vendor],
    ['homepage', software.homepage],
    ['description', software.description],
    ['aliases', software.aliases.join(', ')],
    ['robots.txt', software.robotsToken],
    ['engine', software.engine],
    ['gives way', GIVES_WAY[software.givesWay]],
    ['imitates', software.isImitator ? 'browsers' : null],
    ['ranges at', verification.rangesUrl],
    ['ranges', verification.ranges && rangesText(verification.ranges)],
    ['reverse DNS', verification.reverseDns.join(', ')],
    ['networks', verification.asns.map((asn) => `AS${asn}`).join(', ')],
    ['key directory', verification.signatureAgent],
  ]
  const known = facts.filter((fact): fact is [string, string] => fact[1] !== null && fact[1] !== '')
  const rows = software.signatures.map((signature) => {
    return [
      signature.type,
      seen(signature.observations),
      signature.date,
      signature.source,
      patternText(signature),
    ]
  })
  const titles = ['SIGNATURE', '>SEEN', 'MEASURED', 'SOURCE', 'PATTERN']
  return { said: [], facts: known, titles, rows, none: 'No signatures.' }
}

function rangesText(ranges: PublishedRanges): string {
  const more = ranges.isPartial ? ' and more' : ''
  return `${ranges.prefixes.join(', ')}${more} (${measured(ranges)})`
}

function addressPart(list: readonly Software[], address: Address): Part {
  const rows = listsOf(list)
    .with(address)
    .map(({ software, published }) => {
      const range = published.prefixes.find((prefix) =>
        new AddressRanges([parseAddressRange(prefix)!]).has(address),
      )
      return [software.id, range!, published.date, published.source]
    })
  const titles = ['ID', 'RANGE', 'MEASURED', 'SOURCE']
  return { said: ['Agents that publish this address:'], facts: [], titles, rows, none: NO_OWNER }
}

function listsOf(list: readonly Software[]): AddressLists {
  const compiling = AddressLists.compiling(list)
  for (;;) {
    const step = compiling.next()
    if (step.done) return step.value
  }
}

function fingerprintParts(list: readonly Software[], wanted: FingerprintPattern): readonly Part[] {
  const all = list.flatMap((software) =>
    software.signatures.flatMap((signature) =>
      isPatternOf(signature, wanted.type) ? [compared(software, signature, wanted.value)] : [],
    ),
  )
  const whole = all.filter(({ isWhole }) => isWhole)
  const total = whole.reduce((sum, { signature }) => sum + signature.observations, 0)
  const rows = whole
    .sort((a, b) => b.signature.observations - a.signature.observations || byId(a, b))
    .map(({ software, signature }) => {
      const { observations } = signature
      const share = total === 0 ? '' : `${((observations * 100) / total).toFixed(1)} %`
      return [
        software.id,
        software.kind,
        share,
        seen(observations),
        signature.date,
        signature.source,
        patternText(signature),
      ]
    })
  const parts = all
    .filter(({ isWhole, shared }) => !isWhole && shared.length > 0)
    .sort((a, b) => b.shared.length - a.shared.length || byId(a, b))
    .map(({ software, signature, shared }) => {
      const { observations, date } = signature
      return [software.id, software.kind, shared.join(', '), seen(observations), date, patternText(signature)]
    })
  return [
    {
      said: [`As ${TITLES[wanted.type]}, this belongs to:`],
      facts: [],
      titles: ['ID', 'KIND', '>SHARE', '>SEEN', 'MEASURED', 'SOURCE', 'PATTERN'],
      rows,
      none: NO_OWNER,
    },
    {
      said: ['Parts of it belong to:'],
      facts: [],
      titles: ['ID', 'KIND', 'PARTS', '>SEEN', 'MEASURED', 'PATTERN'],
      rows: parts,
      none: NO_OWNER,
    },
  ]
}

interface Compared {
  readonly software: Software
  readonly signature: FingerprintSignature
  /** All parts match; `*` matches any part. */
  readonly isWhole: boolean
  /** Names of the equal, informative parts. */
  readonly shared: readonly string[]
}

function compared(software: Software, signature: FingerprintSignature, value: string): Compared {
  const { separator, names } = PARTS[signature.type]
  const theirs = signature.value.split(separator)
  const ours = value.split(separator)
  const isEqual = (part: string, index: number) => part === ours[index]
  return {
    software,
    signature,
    isWhole: theirs.every((part, index) => isEqual(part, index) || part === '*' || ours[index] === '*'),
    shared: names.filter(
      (name, index) => name !== '' && isEqual(theirs[index]!, index) && !SILENT.test(theirs[index]!),
    ),
  }
}

function isPatternOf(signature: Signature, type: FingerprintType): signature is FingerprintSignature {
  return signature.type === type
}

function userAgentPart(list: readonly Software[], text: string): Part {
  const index = new UserAgentIndex(list)
  const { software, kind, called } = index.claim(text)
  const rows = index.matches(text).map(({ software, text: words, at }) => {
    const signature = software.signatures.find((each) => each.type === 'user-agent' && each.text === words)!
    const isWhole = signature.type === 'user-agent' && signature.match === 'whole'
    const where = isWhole ? 'all of it' : `character ${at + 1}`
    return [software.id, software.kind, words, where, GIVES_WAY[software.givesWay] ?? '', measured(signature)]
  })
  const named = software === null ? CLAIMS[kind] : `names ${visible(software.name)} (${software.id}, ${kind})`
  return {
    said: [
      `As a User-Agent, this ${named}.`,
      ...(called === null
        ? []
        : [`Its first product has the name of ${visible(called.name)} (${called.id}).`]),
      ...(software === null && called === null ? nearLines(list, text) : []),
    ],
    facts: [],
    titles: ['ID', 'KIND', 'PATTERN', 'STANDS AT', 'GIVES WAY', 'MEASURED'],
    rows,
    none: 'It matches no pattern.',
  }
}

/** Suggestions if the text may be a mistyped id or alias. */
function nearLines(list: readonly Software[], text: string): readonly string[] {
  const near = didYouMean(
    text.toLowerCase(),
    list.flatMap(({ id, aliases }) => [id, ...aliases]),
  )
  return near === '' ? [] : [`No software has this id or alias${near}.`]
}

/** A table without truncation. */
function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  none: string,
): readonly string[] {
  if (rows.length === 0) return [none]
  const columns = titles.map((title): Column => {
    return title.startsWith('>') ? { title: title.slice(1), align: 'right' } : { title }
  })
  return renderTable(columns, rows, Number.POSITIVE_INFINITY)
}

function patternText(signature: Signature): string {
  switch (signature.type) {
    case 'user-agent':
      return signature.match === 'whole' ? `${signature.text} (and nothing else)` : signature.text
    case 'header':
      return signature.value === null ? signature.name : `${signature.name}: ${signature.value}`
    case 'header-order':
      return `${signature.protocol}: ${signature.names.join(', ')}`
    default:
      return signature.isDecisive ? `${signature.value} (decisive)` : signature.value
  }
}

function measured({ date, source }: { readonly date: string; readonly source: string }): string {
  return `${date}, ${source}`
}

/** Published fingerprints have no observations. */
function seen(observations: number): string {
  return observations === 0 ? '-' : String(observations)
}

function byId(a: Compared, b: Compared): number {
  return a.software.id < b.software.id ? -1 : a.software.id === b.software.id ? 0 : 1
}

const FACT_COLUMNS = 15
const NO_OWNER = 'no known software'
const GIVES_WAY = [
  null,
  'to what is built on it',
  'to all others of its kind',
  'to everything, because it is only an engine',
] as const
const CLAIMS: Readonly<Record<ClaimKind, string>> = {
  agent: 'names an agent',
  tool: 'names a tool',
  browser: 'names a browser',
  bot: 'names no known software, but calls itself a bot',
  addressed: 'names no known software, but links to a description',
  'odd-mozilla': 'begins like a browser and names no known one',
  'unknown-product': 'names no known software',
  none: 'is empty',
}
const TITLES: Readonly<Record<FingerprintType, string>> = {
  ja4: 'a JA4',
  ja4s: 'a JA4S',
  ja4h: 'a JA4H',
  ja4x: 'a JA4X',
  stable: 'a stable key',
  http2: 'an HTTP/2 fingerprint',
}
const PARTS: Readonly<
  Record<FingerprintType, { readonly separator: string; readonly names: readonly string[] }>
> = {
  ja4: { separator: '_', names: ['a', 'b', 'c'] },
  ja4s: { separator: '_', names: ['a', 'b', 'c'] },
  ja4h: { separator: '_', names: ['a', 'b', 'c', 'd'] },
  ja4x: { separator: '_', names: ['a', 'b', 'c'] },
  stable: { separator: '-', names: ['', 'a', 'b', 'c'] },
  http2: { separator: '|', names: ['settings', 'window', 'priority', 'pseudo-headers'] },
}
/** Parts that match without being informative. */
const SILENT = /^(?:\*|0*)$/
