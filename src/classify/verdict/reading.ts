import type { RequestHead } from '../../wire/request-head.ts'
import { HEADER, type HeaderIndex } from '../known/index/header-index.ts'
import type { Software } from '../known/software.ts'

/**
 * The headers of a request that matter for classification, in the order in which they were sent. One instance
 * is reused for all requests: nothing awaits between reading and classifying.
 */
export class Reading {
  userAgent: string | null = null
  accept: string | null = null
  acceptLanguage: string | null = null
  acceptEncoding: string | null = null
  contentType: string | null = null
  clientHints: string | null = null
  clientHintsPlatform: string | null = null
  fetchSite: string | null = null
  fetchMode: string | null = null
  fetchDest: string | null = null
  connection: string | null = null
  referer: string | null = null
  /** Which headers of HEADER were sent, one bit each. */
  sent = 0
  /** Codes of HEADER, in the order sent. */
  readonly order = new Uint8Array(ORDER_MAX)
  orderLength = 0
  /** Whether a name begins with a capital letter. */
  hasCapitals = false
  /** An agent, or a tool, that is identified by a header of its own. */
  agent: Software | null = null
  agentHeader: string | null = null
  tool: Software | null = null
  /** A browser that has the User-Agent of another one, and a header of its own: Brave. */
  browser: Software | null = null

  read({ rawHeaders }: RequestHead, index: HeaderIndex): void {
    this.#clear()
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i]!
      const header = index.find(name)
      if (header.code !== 0) this.#note(header.code, rawHeaders[i + 1]!)
      const first = name.charCodeAt(0)
      if (first >= 0x41 && first <= 0x5a) this.hasCapitals = true
      if (header.isEvidence) this.#found(header.softwareOf(rawHeaders[i + 1]!), name)
    }
  }

  has(code: number): boolean {
    return (this.sent & (1 << code)) !== 0
  }

  /** Whether it is a WebSocket handshake. It needs both headers. */
  get isUpgrade(): boolean {
    return this.has(HEADER.upgrade) && this.connection?.toLowerCase().includes('upgrade') === true
  }

  /** A browser sends it for a script. Headers that the script has set say nothing about the browser. */
  get isOfScript(): boolean {
    const { fetchDest, fetchMode, fetchSite } = this
    return fetchDest === 'empty' && fetchMode !== null && fetchSite !== null && fetchSite !== 'none'
  }

  /**
   * Forgets what a script can have set. Names that start with Sec- stay, because browsers forbid scripts to
   * set them (Fetch, forbidden headers).
   */
  forgetScripted(): void {
    if (this.agentHeader === null || !/^sec-/i.test(this.agentHeader)) {
      this.agent = null
      this.agentHeader = null
    }
    this.tool = null
  }

  #found(software: Software | null, name: string): void {
    if (software === null) return
    if (software.kind === 'tool') this.tool ??= software
    else if (software.kind === 'browser') this.browser ??= software
    else if (this.agent === null || isCloser(software, this.agent)) {
      this.agent = software
      this.agentHeader = name
    }
  }

  #note(code: number, value: string): void {
    const isFirst = !this.has(code)
    this.sent |= 1 << code
    if (this.orderLength < ORDER_MAX) this.order[this.orderLength++] = code
    if (!isFirst && code !== HEADER['user-agent']) return
    switch (code) {
      case HEADER['user-agent']:
        // A header that is sent twice is one list (RFC 9110 §5.2), so a second one hides nothing.
        this.userAgent = this.userAgent === null ? value : `${this.userAgent}, ${value}`
        return
      case HEADER.accept:
        this.accept = value
        return
      case HEADER['accept-language']:
        this.acceptLanguage = value
        return
      case HEADER['accept-encoding']:
        this.acceptEncoding = value
        return
      case HEADER['content-type']:
        this.contentType = value
        return
      case HEADER['sec-ch-ua']:
        this.clientHints = value
        return
      case HEADER['sec-ch-ua-platform']:
        this.clientHintsPlatform = value
        return
      case HEADER['sec-fetch-site']:
        this.fetchSite = value
        return
      case HEADER['sec-fetch-mode']:
        this.fetchMode = value
        return
      case HEADER.connection:
        this.connection = value
        return
      case HEADER.referer:
        this.referer = value
        return
      case HEADER['sec-fetch-dest']:
        this.fetchDest = value
        return
    }
  }

  #clear(): void {
    this.userAgent = null
    this.accept = null
    this.acceptLanguage = null
    this.acceptEncoding = null
    this.contentType = null
    this.clientHints = null
    this.clientHintsPlatform = null
    this.fetchSite = null
    this.fetchMode = null
    this.fetchDest = null
    this.connection = null
    this.referer = null
    this.sent = 0
    this.orderLength = 0
    this.hasCapitals = false
    this.agent = null
    this.agentHeader = null
    this.tool = null
    this.browser = null
  }
}

/** A family that shares a header (all SDKs of one generator) is named only if no member of the family is. */
function isCloser(software: Software, than: Software): boolean {
  return than.isFamily && !software.isFamily
}

/** No client sends more of the known headers. */
const ORDER_MAX = 40
