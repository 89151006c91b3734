import type { ConnectionPrint } from '../../fingerprint/print.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import { markBrowser } from './browser-marks.ts'
import type { EvidenceKind, EvidenceSet } from '../known/evidence.ts'
import { HEADER } from '../known/index/header-index.ts'
import type { HeaderOrders } from '../known/header-orders.ts'
import type { Owners } from '../known/owners.ts'
import type { Reading } from './reading.ts'
import type { Scratch } from './scratch.ts'
import type { Shown } from './shown.ts'
import type { Stack } from '../known/stack.ts'
import type { Claim, ClaimKind } from '../known/user-agent.ts'

/** Adds all evidence of one request to the marks. */
export function markRequest(
  scratch: Scratch,
  shown: Shown,
  print: ConnectionPrint,
  head: RequestHead,
  orders: HeaderOrders,
): void {
  const { marks, reading } = scratch
  const { claim, stack, headers, certificate } = shown
  const kind = CLAIMS[claim.kind]
  if (kind !== null) marks.add(kind)
  if (claim.isHeadless || isHeadless(reading)) marks.add('headless')
  if (reading.agent !== null) marks.add('agent-header')
  if (reading.tool !== null) marks.add('tool-header')
  if (print.ja4 !== null) marks.add(STACKS[stack.kind])
  if (claim.kind === 'browser') markBrowser(scratch, shown, print, head, orders)
  else {
    if (isRuntimeFetch(reading)) marks.add('runtime-fetch')
    if (!PAGES_SAY_NOTHING.has(claim.kind) && reading.accept?.startsWith(PAGE_ACCEPT) === true)
      marks.add('accepts-pages')
    if (!MAY_BE_BROWSERS.has(claim.kind) && hasBrowserHeaders(reading)) marks.add('browser-headers')
    const ofHeaders = HEADERS[headers.kind]
    if (ofHeaders !== null) marks.add(ofHeaders)
    const ofCertificate = CERTIFICATES[certificate.kind]
    if (ofCertificate !== null) marks.add(ofCertificate)
  }
  markCall(marks, claim, head, reading)
}

/** Marks what the request is for. Programs that call models, or each other, do so in few ways. */
function markCall(marks: EvidenceSet, claim: Claim, head: RequestHead, reading: Reading): void {
  // What a script of a page requests says nothing about the browser, which may hide its User-Agent.
  if ((claim.kind === 'browser' || claim.kind === 'none') && reading.isOfScript) return
  const isSending = head.method === 'POST' || head.method === 'PUT' || head.method === 'PATCH'
  if (isSending ? isMcp(reading) : isMcpStream(claim, head, reading)) marks.add('mcp-request')
  else if (isSending && isMcpMessage(claim, head, reading)) marks.add('mcp-request')
  if (head.target.startsWith('/.well-known/agent')) marks.add('agent-card')
  if (isSending && isModelPath(head.target)) marks.add('llm-request')
  if (claim.kind === 'browser') return
  if (isDiscovery(head, reading)) marks.add('oauth-discovery')
  const hasToken =
    reading.has(HEADER.authorization) || reading.has(HEADER['x-api-key']) || reading.has(HEADER['api-key'])
  if (hasToken) marks.add('api-token')
  if (isSending && reading.contentType?.startsWith('application/json') === true) marks.add('api-call')
}

function isHeadless({ clientHints }: Reading): boolean {
  return clientHints?.includes('Headless') === true
}

/**
 * The fetch of a server-side runtime sends sec-fetch-mode, as the Fetch standard requires, but no other
 * sec-fetch header.
 */
function isRuntimeFetch(reading: Reading): boolean {
  return reading.fetchMode !== null && reading.fetchSite === null && reading.fetchDest === null
}

/** Headers that only browsers have a use for, and programs that pretend to be one. */
function hasBrowserHeaders(reading: Reading): boolean {
  return (
    reading.fetchDest !== null ||
    reading.clientHints !== null ||
    reading.has(HEADER['upgrade-insecure-requests'])
  )
}

/** The streamable HTTP transport of MCP requires every client to accept both types with each POST. */
function isMcp({ accept }: Reading): boolean {
  return accept?.includes('application/json') === true && accept.includes('text/event-stream')
}

/**
 * What a client of MCP's first HTTP transport (2024-11-05) sends. The server names the target on the event
 * stream: the SDKs for Python and TypeScript append the session to it (server/sse).
 */
function isMcpMessage(claim: Claim, { target }: RequestHead, { contentType }: Reading): boolean {
  if (!target.includes('?session') || claim.kind === 'browser') return false
  return contentType?.startsWith('application/json') === true && MCP_MESSAGE.test(target)
}

/**
 * The stream on which an MCP server sends first. Of five recorded programs that open one at /sse, four are MCP
 * clients; the fifth sends the same bytes.
 */
function isMcpStream(claim: Claim, head: RequestHead, { accept }: Reading): boolean {
  return (
    claim.kind !== 'browser' && accept?.includes('text/event-stream') === true && MCP_PATH.test(head.target)
  )
}

/**
 * MCP's authorization: a client asks which server gives tokens for an MCP path (RFC 9728 §3.1). Other programs
 * ask for protected resources and authorization servers too, but not for those of such a path.
 */
function isDiscovery({ method, target }: RequestHead, { accept }: Reading): boolean {
  if (method !== 'GET' || !target.startsWith(WELL_KNOWN)) return false
  if (accept?.startsWith(PAGE_ACCEPT) === true) return false
  return DISCOVERY_PATH.test(target)
}

function isModelPath(target: string): boolean {
  const end = target.indexOf('?')
  const path = end === -1 ? target : target.slice(0, end)
  for (const suffix of MODEL_PATHS) if (path.endsWith(suffix)) return true
  return MODEL_CALL.test(path)
}

const CLAIMS: Readonly<Record<ClaimKind, EvidenceKind | null>> = {
  agent: 'names-agent',
  tool: 'names-tool',
  browser: null,
  bot: 'declares-bot',
  addressed: 'gives-address',
  'odd-mozilla': 'odd-mozilla',
  'unknown-product': 'unknown-product',
  none: 'no-user-agent',
}
const STACKS: Readonly<Record<Stack['kind'], EvidenceKind>> = {
  browsers: 'stack-of-browsers',
  libraries: 'stack-of-libraries',
  shared: 'stack-shared',
  unknown: 'stack-unknown',
}
const HEADERS: Readonly<Record<Owners['kind'], EvidenceKind | null>> = {
  agents: 'headers-of-agents',
  // An agent that is a library is evidence of a library only.
  libraries: null,
  shared: 'headers-shared',
  browsers: null,
  unknown: null,
}
const CERTIFICATES: Readonly<Record<Owners['kind'], EvidenceKind | null>> = {
  agents: 'certificate-of-agents',
  libraries: 'certificate-of-libraries',
  shared: null,
  browsers: null,
  unknown: null,
}
/** Many tools accept pages, and so does everything that looks like a browser. */
const PAGES_SAY_NOTHING: ReadonlySet<ClaimKind> = new Set(['tool', 'odd-mozilla'])
/** Headers of browsers are no disguise: some agents are browsers, and so may be what looks like one. */
const MAY_BE_BROWSERS: ReadonlySet<ClaimKind> = new Set(['agent', 'odd-mozilla'])
/** The Accept header of browsers. Libraries accept anything, and text browsers send another text. */
const PAGE_ACCEPT = 'text/html,application/xhtml+xml'
/** The API paths of model vendors, which other vendors have adopted. */
const MODEL_PATHS = [
  '/chat/completions',
  '/completions',
  '/responses',
  '/embeddings',
  '/v1/messages',
  '/v2/chat',
  '/api/chat',
  '/api/generate',
  '/v1/rerank',
  '/v2/rerank',
  '/predictions',
  '/converse',
  '/infer',
]
const WELL_KNOWN = '/.well-known/o'
const DISCOVERY_PATH =
  /^\/\.well-known\/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration)\/(?:[^?]{0,200}\/)?mcp(?:[/?]|$)/
const MCP_PATH = /^[^?]*\/(?:mcp|sse)\/?(?:\?|$)/
const MCP_MESSAGE = /^[^?]*\/messages?\/?\?session(?:_i|I)d=/
const MODEL_CALL = /\/models\/[\w.-]{1,80}:[a-zA-Z]{1,40}$/
