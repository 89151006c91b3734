import { type Doubt, doubtsAbout } from '../../../classify/known/fingerprint-sense.ts'
import type { Knowledge } from '../../../classify/known/knowledge.ts'
import { plainName } from '../../../classify/known/software.ts'
import type { NamedSoftware, Registered, SubmissionRecord } from '../../../store/catalogue/submissions.ts'
import type { VerdictCount } from '../../../store/catalogue/trials.ts'
import type { SubmissionFinding } from './findings.ts'
import type { KnownNames } from './names.ts'
import { areBrowsers, isWhole, likenessesOf, ownersBy, type KnownOwners } from './owners.ts'

/** A fingerprint as submitted. */
export type Submitted = Pick<
  SubmissionRecord,
  'type' | 'value' | 'agentName' | 'category' | 'purposes' | 'userAgent' | 'notes'
>

/** Everything that a submission is compared with. */
export interface Surroundings {
  readonly knowledge: Knowledge
  readonly names: KnownNames
  /** The owners of exactly this fingerprint in the database, which may be newer than the loaded knowledge. */
  registered(submitted: Submitted): readonly Registered[]
  /** Other pending submissions of this fingerprint. */
  waiting(submitted: Submitted): readonly WaitingSubmission[]
  /** `null`: never seen. */
  live(submitted: Submitted): Live | null
}

export type WaitingSubmission = Pick<SubmissionRecord, 'id' | 'agentName' | 'softwareId'>

/** What live traffic shows of a fingerprint. */
export interface Live {
  readonly requests: number
  readonly addresses: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  /** The verdicts on those of its requests that are still stored. */
  readonly verdicts: readonly VerdictCount[]
}

export interface Analysis {
  readonly findings: readonly SubmissionFinding[]
  /** The known software that the submission is for; `null`: it names none, or an unknown name. */
  readonly software: NamedSoftware | null
  /** The id of the earlier submission that this one repeats. */
  readonly duplicateOf: string | null
}

/** Collects everything that speaks for or against a submitted fingerprint. */
export function analyse(submitted: Submitted, surroundings: Surroundings): Analysis {
  const { agentName } = submitted
  const { names, knowledge } = surroundings
  const software = agentName === null ? null : names.find(agentName)
  const before = sameOf(submitted, software, surroundings.waiting(submitted))
  return {
    software,
    duplicateOf: before.same?.id ?? null,
    findings: [
      ...doubtsAbout(submitted.type, submitted.value).map(findingOf),
      ...(agentName === null ? [NO_AGENT] : names.findingsOf(agentName)),
      ...ofOwners(submitted, software, surroundings),
      ...before.findings,
      ...ofUserAgent(submitted, software, knowledge),
      ...ofTraffic(software, surroundings.live(submitted)),
    ],
  }
}

function findingOf({ code, detail }: Doubt): SubmissionFinding {
  return { code, detail }
}

/** Findings about the known owners of the fingerprint, or of the most similar ones. */
function ofOwners(
  submitted: Submitted,
  software: NamedSoftware | null,
  { knowledge, registered }: Surroundings,
): readonly SubmissionFinding[] {
  const { type, value } = submitted
  const findings: SubmissionFinding[] = type === 'ja4s' ? [SERVERS_ANSWER] : []
  const alike =
    knowledge === null ? [] : likenessesOf(type).flatMap((each) => ownersBy(knowledge, type, value, each))
  const whole = alike.find(({ likeness }) => isWhole(type, likeness))
  const exact = alike.find(({ likeness }) => likeness === 'exact')
  const known = new Map<string, string>(registered(submitted).map(({ id, name }) => [id, name]))
  for (const { software: each } of exact?.shares ?? []) known.set(each.id, each.name)

  if (type !== 'ja4s' && whole !== undefined && areBrowsers(whole))
    findings.push(ofBrowser(submitted, software, whole))
  else if (type !== 'ja4s' && alike.some(areBrowsers)) findings.push(PARTS_OF_BROWSERS)
  if (known.size > 0) findings.push(knownAlready(software, submitted, known))
  else if (alike[0] === undefined) findings.push(NEW)
  else findings.push(partsKnown(alike[0]))
  return findings
}

/** An agent that drives a browser has the browser's fingerprint, which does not identify the agent. */
function ofBrowser(
  { category }: Submitted,
  software: NamedSoftware | null,
  owners: KnownOwners,
): SubmissionFinding {
  const names = namesIn(owners)
  return (software === null ? category : software.category) === 'browser-agent'
    ? {
        code: 'browser_of_agent',
        detail: `${names} have it: it does not distinguish an agent that drives one from a person who uses it`,
      }
    : {
        code: 'browser_fingerprint',
        detail: `${names} have it: their users would be classified as the agent`,
      }
}

function knownAlready(
  software: NamedSoftware | null,
  { agentName }: Submitted,
  known: ReadonlyMap<string, string>,
): SubmissionFinding {
  const names = listed([...known.values()])
  const isKnown =
    agentName === null ||
    (software !== null && known.has(software.id)) ||
    // A name in the database may be newer than the loaded names.
    [...known.values()].some((name) => isOneName(name, agentName))
  return isKnown
    ? { code: 'known', detail: `it is known to be of ${names}` }
    : { code: 'known_of_others', detail: `it is known to be of ${names}` }
}

function partsKnown(owners: KnownOwners): SubmissionFinding {
  const { likeness } = owners
  const parts = likeness.split('_')
  const what = parts.length === 1 ? `part ${parts[0]} is` : `parts ${parts.join(', ')} are`
  return { code: 'parts_known', detail: `no known software has it; its ${what} of ${namesIn(owners)}` }
}

/** Findings about earlier submissions of the fingerprint, for the same agent or for another one. */
function sameOf(
  { agentName }: Submitted,
  software: NamedSoftware | null,
  waiting: readonly WaitingSubmission[],
): { readonly same: WaitingSubmission | null; readonly findings: readonly SubmissionFinding[] } {
  const isSame = (other: WaitingSubmission) =>
    agentName === null ||
    (software !== null && software.id === other.softwareId) ||
    (other.agentName !== null && isOneName(other.agentName, agentName))
  const same = waiting.find(isSame) ?? null
  if (same !== null)
    return {
      same,
      findings: [{ code: 'submitted_before', detail: `${same.id} is the same and still pending` }],
    }
  const others = waiting.flatMap((each) => each.agentName ?? [])
  if (others.length === 0) return { same, findings: [] }
  const detail = `it was also submitted for ${listed(others)}`
  return { same, findings: [{ code: 'submitted_for_another', detail }] }
}

function isOneName(one: string, other: string): boolean {
  return one === other || (/[a-z0-9]/i.test(one) && plainName(one) === plainName(other))
}

function ofUserAgent(
  { userAgent, agentName }: Submitted,
  software: NamedSoftware | null,
  { userAgents }: Knowledge,
): readonly SubmissionFinding[] {
  if (userAgent === null) return []
  const claim = userAgents.claim(userAgent)
  const named = claim.software
  if (named !== null && named.id === software?.id)
    return [{ code: 'user_agent_agrees', detail: `the User-Agent is that of ${named.name}` }]
  if (claim.kind === 'browser')
    return [
      { code: 'user_agent_of_browser', detail: `the User-Agent is that of ${named?.name ?? 'a browser'}` },
    ]
  if (named?.kind === 'agent' && agentName !== null)
    return [{ code: 'user_agent_of_another', detail: `the User-Agent is that of ${named.name}` }]
  return named === null
    ? [{ code: 'user_agent_unknown', detail: 'no known software sends this User-Agent' }]
    : [{ code: 'user_agent_names', detail: `the User-Agent names ${named.name}` }]
}

function ofTraffic(software: NamedSoftware | null, live: Live | null): readonly SubmissionFinding[] {
  if (live === null) return [{ code: 'not_seen', detail: 'it was not seen here yet' }]
  const { requests, addresses, verdicts, firstSeenMs } = live
  const since = new Date(firstSeenMs).toISOString()
  const findings: SubmissionFinding[] = [
    {
      code: 'seen',
      detail: `${counted(requests, 'request')} of ${counted(addresses, 'address')} since ${since}`,
    },
  ]
  const countOf = (isMeant: (each: VerdictCount) => boolean) =>
    verdicts.filter(isMeant).reduce((sum, { count }) => sum + count, 0)
  const total = countOf(() => true)
  const people = countOf(({ verdict }) => verdict === 'human')
  const own = countOf(({ agentId }) => agentId !== null && agentId === software?.id)
  const others = verdicts.filter(({ agentId }) => agentId !== null && agentId !== software?.id)
  if (people > 0)
    findings.push({ code: 'seen_of_people', detail: `${people} of ${total} were classified as people` })
  if (own > 0)
    findings.push({ code: 'seen_agrees', detail: `${own} of ${total} were classified as this agent` })
  if (others.length > 0) {
    const names = listed(others.map(({ agentId }) => agentId!))
    findings.push({ code: 'seen_of_others', detail: `some of ${total} were classified as ${names}` })
  }
  return findings
}

function namesIn({ shares }: KnownOwners): string {
  return listed(shares.map(({ software }) => software.name))
}

function listed(names: readonly string[]): string {
  const distinct = [...new Set(names)]
  const more = distinct.length - NAMES_SAID_MAX
  return distinct.slice(0, NAMES_SAID_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : what.endsWith('s') ? 'es' : 's'}`
}

const NO_AGENT: SubmissionFinding = {
  code: 'no_agent',
  detail: 'it names no agent: the reviewer must name one',
}
const SERVERS_ANSWER: SubmissionFinding = {
  code: 'servers_answer',
  detail: 'a JA4S is the answer of this server: it only distinguishes clients that share a JA4',
}
const PARTS_OF_BROWSERS: SubmissionFinding = {
  code: 'parts_of_browsers',
  detail: 'browsers have parts of it: it may belong to a new version of one',
}
const NEW: SubmissionFinding = {
  code: 'new',
  detail: 'no known software has it or an informative part of it',
}
const NAMES_SAID_MAX = 3
