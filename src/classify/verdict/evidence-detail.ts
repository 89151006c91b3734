import type { EvidenceKind } from '../known/evidence.ts'
import type { Shown } from './marks.ts'
import type { Share } from '../known/owners.ts'
import type { Reading } from './reading.ts'

/**
 * Describes evidence in words, for people. The text does not repeat long values that the client sent, and
 * never its secrets.
 */
export function detailOf(kind: EvidenceKind, shown: Shown, reading: Reading): string {
  const { claim, stack, headers, certificate } = shown
  const named = claim.software?.name ?? 'a browser'
  // An earlier request claimed to be a browser; this one claims to be something else.
  if (DENYING.has(kind) && claim.kind !== 'browser') return DETAILS[kind]
  switch (kind) {
    case 'names-agent':
      return claim.kind === 'agent' ? `the User-Agent names ${named}` : 'an earlier request named an agent'
    case 'names-tool':
    case 'names-browser':
    case 'names-plain-browser':
      return `the User-Agent names ${named}`
    case 'agent-header':
      return reading.agent === null
        ? 'an earlier request had a header of an agent'
        : `${reading.agentHeader} is a header of ${reading.agent.name}`
    case 'tool-header':
      return `it has a header of ${reading.tool?.name}`
    case 'address-published':
    case 'address-foreign':
      return `${DETAILS[kind]} ${addressesText(shown)}`
    case 'unknown-product':
      return claim.called === null
        ? DETAILS[kind]
        : `the User-Agent names a product called as ${claim.called.name} is`
    case 'stack-of-browsers':
    case 'stack-of-libraries':
    case 'stack-shared':
      return `${DETAILS[kind]}: ${sharesText(stack.shares)}`
    case 'headers-of-agents':
    case 'headers-shared':
      return `${DETAILS[kind]}: ${sharesText(headers.shares)}`
    case 'certificate-of-agents':
    case 'certificate-of-libraries':
      return `${DETAILS[kind]}: ${sharesText(certificate.shares)}`
    case 'fingerprint-of-agent':
      return `${DETAILS[kind]}: ${decidedText(shown)}`
    case 'stack-disagrees':
      return `the TLS is not ${named}'s but that of ${sharesText(stack.shares)}`
    case 'version-disagrees':
      return `the TLS is not that of ${named} ${claim.version}`
    case 'client-hints-disagree':
      return `sec-ch-ua does not go with ${named} ${claim.version}`
    default:
      return DETAILS[kind]
  }
}

/** For a past request of which only the kind of evidence was stored. */
export function generalDetail(kind: EvidenceKind): string {
  return DETAILS[kind]
}

/** The agent, the source of its list and the list's age, so that a reader can judge the evidence. */
function addressesText({ addresses, addressesAgeDays: days }: Shown): string {
  const { software, published } = addresses!
  const age = days < 0 ? '' : days === 1 ? ', a day old' : `, ${days} days old`
  return `${software.name} (${published.source}, ${published.date}${age})`
}

/** All decided agents, including different agents for different fingerprints. */
function decidedText({ certificate, headers, stack }: Shown): string {
  const said = (type: string, { decided }: Pick<Shown['stack'], 'decided'>) =>
    decided.slice(0, SHARES_SAID_MAX).map(({ name }) => `${name} (${type})`)
  return [...said('JA4X', certificate), ...said('JA4H', headers), ...said('JA4', stack)].join(', ')
}

/** The software that shares a fingerprint, with each one's share. */
function sharesText(shares: readonly Share[]): string {
  const said = shares.slice(0, SHARES_SAID_MAX)
  const parts = said.map(({ software, share }) => `${software.name} ${Math.round(share * 100)} %`)
  const more = shares.length - said.length
  return parts.join(', ') + (more > 0 ? ` and ${more} more` : '')
}

const SHARES_SAID_MAX = 4
const DENYING: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  ...(['stack-disagrees', 'version-disagrees', 'client-hints-disagree'] as const),
])
const DETAILS: Readonly<Record<EvidenceKind, string>> = {
  'names-agent': 'the User-Agent names an agent',
  'names-tool': 'the User-Agent names a tool',
  'names-browser': 'the User-Agent names a browser',
  'names-plain-browser': 'the User-Agent names a browser of which little is known',
  'declares-bot': 'the User-Agent says that it is a bot',
  'gives-address': 'the User-Agent says where to read of it',
  'odd-mozilla': "the User-Agent begins like a browser's and names none",
  'unknown-product': 'the User-Agent names a product that nobody knows',
  'no-user-agent': 'there is no User-Agent',
  headless: 'it says that nobody looks at it (headless)',
  'agent-header': 'it has a header of an agent',
  'tool-header': 'it has a header of a tool',
  'mcp-request': 'it accepts JSON and an event stream, as MCP has its clients do',
  'agent-card': 'it asks for the card of an agent (A2A)',
  'llm-request': 'it asks where the interfaces of language models are asked',
  'api-token': 'it has a token or key of an API',
  'api-call': 'it sends JSON, and is no browser',
  'runtime-fetch': 'it has sec-fetch-mode without sec-fetch-site and -dest: the fetch of a runtime',
  'accepts-pages': 'it accepts pages as browsers do, and is none',
  'forged-headers': 'it sent headers that only the gate sets',
  'address-published': 'the address is one of those published for',
  'address-foreign': 'the address is none of those published for',
  'stack-of-browsers': 'the TLS is that of browsers',
  'stack-of-libraries': 'the TLS is that of libraries and tools',
  'stack-shared': 'browsers and other programs share this TLS',
  'stack-unknown': 'nobody is known to have this TLS',
  'headers-of-agents': 'only agents are known to order headers so',
  'headers-shared': 'agents and other programs order headers so',
  'certificate-of-agents': 'agents have such a certificate',
  'certificate-of-libraries': 'libraries and tools have such a certificate',
  'fingerprint-of-agent': 'it was decided that whoever has this fingerprint is this agent',
  'stack-agrees': 'the TLS is that of the browser it says to be',
  'stack-disagrees': 'the TLS is not that of the browser it says to be',
  'stack-alike': 'parts of the TLS are those of the browser it says to be',
  'stack-unlike': 'no part of the TLS is known of the browser it says to be',
  'version-disagrees': 'the TLS lacks what that version has, or has what it lacks',
  'post-quantum-missing': 'it offers no post-quantum key, as that version does unless it is turned off',
  'http2-agrees': 'HTTP/2 is opened as that browser does',
  'http2-disagrees': 'HTTP/2 is opened as no version of that browser does',
  'http2-unlike': 'HTTP/2 is opened with settings that are not known of that browser',
  'http1-only': 'it does not offer HTTP/2, as that browser does',
  'client-hints-missing': 'there is no sec-ch-ua, which that browser sends',
  'client-hints-disagree': 'sec-ch-ua does not go with the User-Agent',
  'fetch-metadata-missing': 'there is no sec-fetch header, which that browser sends',
  'fetch-metadata-odd': 'its sec-fetch headers go together as no page makes them',
  'headers-missing': 'it lacks a header that browser has on every such request',
  'language-missing': 'there is no accept-language, which browsers send',
  'encoding-disagrees': 'accept-encoding lacks what that browser takes',
  'header-case-odd': 'over HTTP/1 its headers are in lower case, as no browser sends them',
  'header-order-agrees': 'its headers are in the order of that browser',
  'header-order-disagrees': 'its headers are in another order than that browser sends',
  'robots-first': 'it asked for robots.txt first',
  crawls:
    'it goes through the site as crawlers do: from robots.txt to the sitemap, or by links faster than anybody reads',
  'loads-parts': 'it loads what belongs to pages',
  'asks-sitemap': 'it asks for a sitemap, which is for crawlers',
  'asks-broadly': 'it asks for many pages in a few minutes, and for next to nothing that belongs to them',
  'asks-fast': 'it asks for pages faster than a person reads',
  'asks-from-many':
    'nobody is known to have this TLS, and many addresses ask with it for pages and nothing else',
}
