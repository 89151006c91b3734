import type { EvidenceKind } from '../known/evidence.ts'
import type { Shown } from './shown.ts'
import type { OwnerShare } from '../known/owners.ts'
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
      return `the request has a header of ${reading.tool?.name}`
    case 'address-published':
      return `the address is in the published ranges of ${addressesText(shown)}`
    case 'address-foreign':
      return `the address is not in the published ranges of ${addressesText(shown)}`
    case 'unknown-product':
      return claim.called === null
        ? DETAILS[kind]
        : `the User-Agent names a product with a name like ${claim.called.name}`
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
      return `the TLS fingerprint does not belong to ${named}, but to ${sharesText(stack.shares)}`
    case 'version-disagrees':
      return `the TLS features do not match ${named} ${claim.version}`
    case 'newer-than-claimed':
      return `it sends what only versions after ${named} ${claim.version} send`
    case 'client-hints-disagree':
      return `sec-ch-ua does not match ${named} ${claim.version}`
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
function sharesText(shares: readonly OwnerShare[]): string {
  const said = shares.slice(0, SHARES_SAID_MAX)
  const parts = said.map(({ software, share }) => `${software.name} ${Math.round(share * 100)} %`)
  const more = shares.length - said.length
  return parts.join(', ') + (more > 0 ? ` and ${more} more` : '')
}

const SHARES_SAID_MAX = 4
const DENYING: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  'stack-disagrees',
  'version-disagrees',
  'newer-than-claimed',
  'client-hints-disagree',
])
const DETAILS: Readonly<Record<EvidenceKind, string>> = {
  'names-agent': 'the User-Agent names an agent',
  'names-tool': 'the User-Agent names a tool',
  'names-browser': 'the User-Agent names a browser',
  'names-plain-browser': 'the User-Agent names a browser about which little is known',
  'declares-bot': 'the User-Agent says that the client is a bot',
  'gives-address': 'the User-Agent says where to find information about the client',
  'odd-mozilla': 'the User-Agent starts like that of a browser, but names no browser',
  'unknown-product': 'the User-Agent names an unknown product',
  'no-user-agent': 'the User-Agent is missing',
  headless: 'it says that it is a headless browser',
  'agent-header': 'the request has a header of an agent',
  'tool-header': 'the request has a header of a tool',
  'mcp-request': 'it accepts an event stream or sends messages like MCP clients',
  'agent-card': 'it requests an agent card (A2A)',
  'oauth-discovery': 'it looks for the authorization server of an MCP path',
  'llm-request': 'it requests a path of language model APIs',
  'api-token': 'it sends an API token or key',
  'api-call': 'it sends JSON and is not a browser',
  'runtime-fetch':
    'it sends sec-fetch-mode without sec-fetch-site and sec-fetch-dest, like fetch in a JavaScript runtime',
  'browser-headers': 'it sends headers that only browsers need, but is not one',
  'accepts-pages': 'it accepts pages like a browser, but is not one',
  'forged-headers': 'it sent headers that only the proxy may set',
  'address-published': 'the address is in the published ranges of the agent',
  'address-foreign': 'the address is not in the published ranges of the agent',
  'stack-of-browsers': 'the TLS fingerprint belongs to browsers',
  'stack-of-libraries': 'the TLS fingerprint belongs to libraries and tools',
  'stack-shared': 'browsers and other programs share this TLS fingerprint',
  'stack-unknown': 'the TLS fingerprint is unknown',
  'headers-of-agents': 'only agents are known to send headers in this order',
  'headers-shared': 'agents and other programs send headers in this order',
  'certificate-of-agents': 'agents use certificates like this one',
  'certificate-of-libraries': 'libraries and tools use certificates like this one',
  'fingerprint-of-agent': 'the fingerprint is marked as decisive for this agent',
  'stack-agrees': 'the TLS fingerprint matches the browser it claims to be',
  'stack-disagrees': 'the TLS fingerprint does not match the browser it claims to be',
  'stack-alike': 'parts of the TLS fingerprint match the browser it claims to be',
  'stack-unlike': 'no part of the TLS fingerprint is known for the browser it claims to be',
  'version-disagrees': 'the TLS features do not match the version it claims to be',
  'newer-than-claimed': 'it sends what only later versions of that browser send',
  'post-quantum-missing': 'it offers no post-quantum key, which that version offers unless it is turned off',
  'http2-agrees': 'the HTTP/2 fingerprint matches that browser',
  'http2-disagrees': 'the HTTP/2 fingerprint matches no version of that browser',
  'http2-unlike': 'the HTTP/2 settings are unknown for that browser',
  'http1-only': 'it does not offer HTTP/2, which that browser offers',
  'client-hints-missing': 'sec-ch-ua is missing, which that browser sends',
  'client-hints-disagree': 'sec-ch-ua does not match the User-Agent',
  'fetch-metadata-missing': 'the sec-fetch headers are missing, which that browser sends',
  'fetch-metadata-odd': 'its sec-fetch headers have a combination that no page produces',
  'headers-missing': 'it lacks a header that the claimed browser sends with every such request',
  'several-headers-missing':
    'it lacks several headers that the claimed browser sends with every such request',
  'language-missing': 'accept-language is missing, which browsers send',
  'encoding-disagrees': 'accept-encoding lacks an encoding that the claimed browser supports',
  'header-case-odd': 'its HTTP/1 header names are in lower case, which no browser sends',
  'header-order-agrees': 'its headers are in the order of that browser',
  'header-order-disagrees': 'its headers are not in the order of that browser',
  'robots-first': 'its first request was for robots.txt',
  crawls:
    'it crawls the site: from robots.txt to the sitemap, or from link to link faster than a person reads',
  'loads-parts': 'it loads the resources of pages',
  'asks-sitemap': 'it requests a sitemap, which is for crawlers',
  'asks-broadly': 'it requests many pages in a few minutes, and almost none of their resources',
  'asks-fast': 'it requests pages faster than a person reads',
  'asks-from-many':
    'the TLS fingerprint is unknown, and many addresses use it to request pages and nothing else',
  campaign: 'its network and browser belong to a campaign: one crawler from many addresses',
}
