import type { Brand } from '../../shared/brand.ts'
import { DocumentFault, type DocumentProblem, Place, shown } from '../../shared/problem.ts'
import { type PublishedRanges, readDate, readPublishedRanges } from './published-ranges.ts'
import { readSignature, type Signature } from './signature.ts'

export type SoftwareId = Brand<string, 'SoftwareId'>

/** A program that is known by how it behaves and identifies itself. */
export interface Software {
  readonly id: SoftwareId
  readonly name: string
  readonly kind: SoftwareKind
  /** For agents; `null` for tools and browsers. */
  readonly category: Category | null
  /** What an agent is for, as far as it is published; each once. */
  readonly purposes: readonly Purpose[]
  /** Where each of the purposes was published, in the same order. */
  readonly purposeSources: readonly PurposeSource[]
  readonly vendor: string | null
  readonly homepage: string | null
  readonly description: string | null
  /** Other names for it: in labelled data, in the API. */
  readonly aliases: readonly string[]
  /** Its name in robots.txt. */
  readonly robotsToken: string | null
  /** For browsers. The engine determines TLS and headers. */
  readonly engine: Engine | null
  /**
   * If a User-Agent names several Software of one kind, the lowest value wins, then the first named. 0: the
   * token is its own. 1: programs built on it send the token too (Chrome, Headless Chrome, Nutch). 2:
   * programs with value 1 send the token too (Safari). 3: every program with the engine sends it (AppleWebKit).
   */
  readonly givesWay: 0 | 1 | 2 | 3
  /** It imitates a browser. */
  readonly isImitator: boolean
  /**
   * It stands for all Software with a shared mark (SDKs of one generator), and is named only if no member is.
   */
  readonly isFamily: boolean
  readonly verification: Verification
  readonly signatures: readonly Signature[]
}

export type SoftwareKind = (typeof SOFTWARE_KINDS)[number]
export type Category = (typeof CATEGORIES)[number]
export type Purpose = (typeof PURPOSES)[number]
export type Engine = (typeof ENGINES)[number]

export interface PurposeSource {
  readonly source: string
  /** The day, `YYYY-MM-DD`. */
  readonly date: string
}

/** How the vendor lets others verify the agent. */
export interface Verification {
  readonly rangesUrl: string | null
  readonly ranges: PublishedRanges | null
  /** Ends of the host names of its addresses, like `.googlebot.com`. */
  readonly reverseDns: readonly string[]
  /** The networks of all its addresses: autonomous system numbers. */
  readonly asns: readonly number[]
  /** The origin of its key directory, as in Signature-Agent. */
  readonly signatureAgent: string | null
}

/** Parses a file of signatures: a list of Software. Throws a DocumentFault with all problems. */
export function parseSoftwareList(value: unknown, isFromLater = false): readonly Software[] {
  const problems: DocumentProblem[] = []
  const list = readSoftwareList(Place.of(value ?? [], problems, isFromLater))
  if (problems.length > 0) throw new DocumentFault('SIGNATURES_INVALID', problems)
  return list
}

/** Parses one Software of such a list. Throws a DocumentFault with all problems. */
export function parseSoftware(value: unknown): Software {
  const problems: DocumentProblem[] = []
  const software = readSoftware(Place.of(value, problems), new Set())
  if (software === null || problems.length > 0) throw new DocumentFault('SIGNATURES_INVALID', problems)
  return software
}

export function namesOf({ id, name, aliases }: Software): readonly string[] {
  return [id, name, ...aliases]
}

/** Normalizes a name for comparison, regardless of spelling. */
export function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
}

function readSoftwareList(place: Place): readonly Software[] {
  const { value } = place
  if (!Array.isArray(value)) {
    place.refuse(`is ${shown(value)}; expected a list of software`)
    return []
  }
  const ids = new Set<string>()
  const list: Software[] = []
  for (const item of value.length === 0 ? [] : place.items()) {
    const software = readSoftware(item, ids)
    if (software !== null) list.push(software)
  }
  return list
}

function readSoftware(item: Place, ids: Set<string>): Software | null {
  if (!item.isMapping) return item.refuse(`is ${shown(item.value)}; expected a mapping`)
  const id = idOf(item, ids)
  const place = id === null ? item : item.inside(`software "${id}"`)
  const members = place.members(MEMBERS)
  const required = (name: string) => {
    const member = members.get(name)
    if (member === undefined) place.refuse(`needs \`${name}\``)
    return member
  }
  const text = (name: string) => members.get(name)?.text('text') ?? null
  const name = required('name')?.text('a name') ?? null
  const kind = required('kind')?.choice(SOFTWARE_KINDS) ?? null
  const category = members.get('category')?.choice(CATEGORIES) ?? null
  const engine = members.get('engine')?.choice(ENGINES) ?? null
  if (kind === 'agent' && category === null && !members.has('category'))
    place.refuse(`needs \`category\`, because it is an agent: ${CATEGORIES.join(', ')}`)
  if (kind !== 'agent' && category !== null) members.get('category')!.refuse('is allowed only for agents')
  if (kind === 'browser' && engine === null && !members.has('engine'))
    place.refuse(`needs \`engine\`, because it is a browser: ${ENGINES.join(', ')}`)
  if (kind !== 'browser' && engine !== null) members.get('engine')!.refuse('is allowed only for browsers')
  const signatures = (members.get('signatures')?.items() ?? []).map(readSignature)
  const software = {
    name,
    kind,
    category,
    ...readPurposes(members.get('purpose'), kind),
    vendor: text('vendor'),
    homepage: url(members.get('homepage')),
    description: text('description'),
    aliases: texts(members.get('aliases')),
    robotsToken: text('robots_token'),
    engine,
    givesWay: members.get('gives_way')?.choice([0, 1, 2, 3] as const) ?? 0,
    isImitator: members.get('imitates_browsers')?.boolean() ?? false,
    isFamily: members.get('family')?.boolean() ?? false,
    verification: readVerification(members.get('verification'), kind),
    signatures: signatures.filter((signature) => signature !== null),
  }
  if (id === null || name === null || kind === null) return null
  return Object.freeze({ id, ...software, name, kind })
}

function idOf(item: Place, ids: Set<string>): SoftwareId | null {
  const member = item.entries().get('id')
  if (member === undefined) return item.refuse('needs an id')
  const id = member.text('an id')
  if (id === null) return null
  if (!ID.test(id))
    return member.refuse(`is ${shown(id)}; expected 1 to 64 lower-case letters, digits and hyphens`)
  if (ids.has(id)) return member.refuse(`${shown(id)} is already used`)
  ids.add(id)
  return id as SoftwareId
}

function readPurposes(
  place: Place | undefined,
  kind: SoftwareKind | null,
): Pick<Software, 'purposes' | 'purposeSources'> {
  const purposes: Purpose[] = []
  const purposeSources: PurposeSource[] = []
  if (place !== undefined && kind !== null && kind !== 'agent') place.refuse('is allowed only for agents')
  for (const item of place?.items() ?? []) {
    const members = item.members(['is', 'source', 'date'])
    const word = members.get('is')?.choice(PURPOSES) ?? null
    const source = members.get('source')?.text('where it was published, as text') ?? null
    const date = readDate(members.get('date'))
    if (!members.has('is') || !members.has('source') || !members.has('date'))
      item.refuse('needs `is`, `source` and `date`')
    else if (word !== null && purposes.includes(word)) members.get('is')!.refuse(`${word} is already given`)
    else if (word !== null && source !== null && date !== null) {
      purposes.push(word)
      purposeSources.push({ source, date })
    }
  }
  return { purposes: Object.freeze(purposes), purposeSources: Object.freeze(purposeSources) }
}

function readVerification(place: Place | undefined, kind: SoftwareKind | null): Verification {
  const members = place?.members(['ranges_url', 'ranges', 'reverse_dns', 'asns', 'signature_agent'])
  return {
    rangesUrl: url(members?.get('ranges_url')),
    ranges: readRanges(members?.get('ranges'), kind),
    reverseDns: hostEnds(members?.get('reverse_dns')),
    asns: (members?.get('asns')?.items() ?? []).flatMap((item) => item.integer(1, ASN_MAX) ?? []),
    signatureAgent: url(members?.get('signature_agent')),
  }
}

/** Only agents are verified. */
function readRanges(place: Place | undefined, kind: SoftwareKind | null): PublishedRanges | null {
  if (place === undefined) return null
  return kind === null || kind === 'agent'
    ? readPublishedRanges(place)
    : place.refuse('is allowed only for agents')
}

function texts(place: Place | undefined): readonly string[] {
  return (place?.items() ?? []).map((item) => item.text('text')).filter((each) => each !== null)
}

/** At least two labels: `.com` alone would match most host names. */
function hostEnds(place: Place | undefined): readonly string[] {
  return (place?.items() ?? []).flatMap((item) => {
    const end = item.text('a host name suffix, like .googlebot.com')
    if (end === null || HOST_END.test(end)) return end ?? []
    return item.refuse(`is ${shown(end)}; expected a host name suffix, like .googlebot.com`) ?? []
  })
}

function url(place: Place | undefined): string | null {
  const text = place?.text('a URL') ?? null
  if (text === null || URL.canParse(text)) return text
  return place!.refuse(`${shown(text)} is not a valid URL`)
}

export const SOFTWARE_KINDS = ['agent', 'tool', 'browser'] as const
export const CATEGORIES = [
  'llm-sdk',
  'browser-agent',
  'orchestrator',
  'crawler',
  'mcp-client',
  'custom',
] as const
/**
 * What an agent does with what it fetches. `search`: an index that people search. `assistant`: an answer to a
 * question of a person. `agent`: a task that it works on by itself. `training`: a model. `archive`: a copy to
 * keep. `monitor`: a check of a site. `preview`: a picture or an extract of a link. `seo`: search marketing.
 * `security`: a scan.
 */
export const PURPOSES = [
  'search',
  'assistant',
  'agent',
  'training',
  'archive',
  'monitor',
  'preview',
  'seo',
  'security',
] as const
export const ENGINES = ['blink', 'gecko', 'webkit', 'other'] as const
/** RFC 6793. */
const ASN_MAX = 4_294_967_295
const HOST_END = /^\.?[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){1,10}$/
const ID = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/
const MEMBERS = [
  'id',
  'name',
  'kind',
  'category',
  'purpose',
  'vendor',
  'homepage',
  'description',
  'aliases',
  'robots_token',
  'engine',
  'gives_way',
  'imitates_browsers',
  'family',
  'verification',
  'signatures',
]
