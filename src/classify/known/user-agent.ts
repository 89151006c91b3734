import { appPartIn, isAppsName } from './claims/apps.ts'
import { BOT_WORD, declaredIn, declaresItself, isForged, isUsual, kindOf } from './claims/declared.ts'
import { type Engine, namesOf, plainName, type Software } from './software.ts'

/** What a User-Agent claims. Created once for each text, as long as it is remembered. */
export interface Claim {
  /** Unique among the remembered claims. */
  readonly number: number
  /** The Software that the text names. An agent has precedence over a tool, a tool over a browser. */
  readonly software: Software | null
  readonly kind: ClaimKind
  /**
   * If no Software is named: the Software with the name of the first product. It only gives a name to a
   * client that is classified as agent or tool for other reasons, because other programs use the same words.
   */
  readonly called: Software | null
  /** For a named browser. */
  readonly engine: Engine | null
  /** The engine's main version, counted as its own browser does (Chrome, Firefox, Safari); 0 if unknown. */
  readonly version: number
  readonly platform: Platform | null
  /** It claims to be a phone or tablet. */
  readonly isMobile: boolean
  /** It claims to run without a screen: HeadlessChrome. */
  readonly isHeadless: boolean
  /**
   * An engine inside another program that sends other headers: QtWebEngine, Android WebView, WebKitGTK, the web
   * views of iOS.
   */
  readonly isEmbedded: boolean
  /** WebKit with the TLS library of its system, not Apple's: WebKitGTK and WPE. */
  readonly hasForeignTls: boolean
  /** Internet Explorer on a system whose TLS ends at 1.2. With Trident/7.0 it may be the mode of Edge. */
  readonly endsAtTls12: boolean
}

export type ClaimKind =
  | 'agent'
  | 'tool'
  | 'browser'
  /** Unknown software, but it declares itself with a word like crawler. */
  | 'bot'
  /** Unknown software, but it gives a contact address. */
  | 'addressed'
  /** Begins like a browser's User-Agent, but names no browser. */
  | 'odd-mozilla'
  /** An unknown product. */
  | 'unknown-product'
  | 'none'

export type Platform = 'windows' | 'mac' | 'linux' | 'android' | 'ios' | 'chromeos'

interface Pattern {
  readonly software: Software
  readonly text: string
  /** The number of characters before its first letter or digit. */
  readonly lead: number
  /** The length of its first word. */
  readonly wordLength: number
  readonly endsWord: boolean
  /** It must be the whole User-Agent. */
  readonly isWhole: boolean
}

/** Finds the Software that a User-Agent names. */
export class UserAgentIndex {
  /** By the hash of the pattern's first word, so that reading a text makes no strings of its words. */
  readonly #patterns = new Map<number, Pattern[]>()
  /** Agents and tools by their names. */
  readonly #names = new Map<string, Software>()
  #claims = new Map<string, Claim>()
  #olderClaims = new Map<string, Claim>()
  #count = 0

  constructor(list: readonly Software[]) {
    for (const software of list) this.#learn(software)
  }

  /** Yields in between, because thousands of Software take milliseconds. */
  static *compiling(list: readonly Software[]): Generator<undefined, UserAgentIndex> {
    const index = new UserAgentIndex([])
    for (const [number, software] of list.entries()) {
      index.#learn(software)
      if (number % SLICE === SLICE - 1) yield
    }
    return index
  }

  /** `text` is `null` for a request without the header. */
  claim(text: string | null): Claim {
    if (text === null) return NO_CLAIM
    const found = this.#claims.get(text)
    if (found !== undefined) return found
    const claim = this.#olderClaims.get(text) ?? this.#read(text)
    if (text.length > REMEMBERED_LENGTH_MAX) return claim
    if (this.#claims.size >= CLAIMS_MAX) {
      this.#olderClaims = this.#claims
      this.#claims = new Map()
    }
    this.#claims.set(text, claim)
    return claim
  }

  /** Every Software that the text names, and the position. For explanations. */
  matches(
    text: string,
  ): readonly { readonly software: Software; readonly text: string; readonly at: number }[] {
    const found: { software: Software; text: string; at: number }[] = []
    this.#walk(text.slice(0, LENGTH_READ_MAX).toLowerCase(), (pattern, at) =>
      found.push({ software: pattern.software, text: pattern.text, at }),
    )
    return found
  }

  #learn(software: Software): void {
    for (const signature of software.signatures)
      if (signature.type === 'user-agent') this.#add(software, signature.text, signature.match === 'whole')
    if (software.kind === 'browser') return
    const { robotsToken } = software
    for (const name of robotsToken === null ? namesOf(software) : [...namesOf(software), robotsToken]) {
      const plain = plainName(name)
      if (!this.#names.has(plain)) this.#names.set(plain, software)
    }
  }

  #add(software: Software, text: string, isWhole: boolean): void {
    const lead = text.search(WORD)
    if (lead === -1) return
    const word = WORD.exec(text)![0]
    const endsWord = isWordAt(text, text.length - 1)
    const pattern = { software, text, lead, wordLength: word.length, endsWord, isWhole }
    const hash = hashOf(word)
    const patterns = this.#patterns.get(hash)
    if (patterns === undefined) this.#patterns.set(hash, [pattern])
    else patterns.push(pattern)
  }

  #read(whole: string): Claim {
    const text = whole.slice(0, LENGTH_READ_MAX).toLowerCase()
    const best = new Best()
    this.#walk(text, (pattern, at) => best.consider(pattern, at))
    // Most texts that are new have only a new version.
    const isUsualText = isUsual(text)
    const app = isUsualText ? null : appPartIn(text)
    const isApps = app !== null && best.agent !== null && isAppsName(best.agent) && !declaresItself(text)
    const agent = isApps ? null : best.agent
    // A bot that embeds a browser, or is built with a tool, is still a bot if it says so.
    const declared = agent === null && !isUsualText ? declaredIn(text, best.tool, best.browser, app) : null
    const isBrowser =
      declared === null && best.browser !== null && (isUsualText || !isForged(text, best.browser))
    const software = agent ?? best.tool ?? (isBrowser ? best.browser : null)
    const kind = declared ?? software?.kind ?? (best.browser === null ? kindOf(text, app) : 'unknown-product')
    const platform = platformOf(text)
    const engine = kind === 'browser' ? engineOf(software!, platform) : null
    return {
      number: ++this.#count,
      software,
      kind,
      called: software === null && app !== 'client' ? this.#called(text) : null,
      engine,
      version: engine === null ? 0 : versionOf(text, engine),
      platform,
      isMobile: MOBILE.test(text),
      isHeadless: text.includes('headless'),
      isEmbedded: isEmbedded(text, engine, platform),
      hasForeignTls: engine === 'webkit' && !isOfApple(platform),
      endsAtTls12: kind === 'browser' && OLD_IE.test(text),
    }
  }

  /** The first product, or else any product that calls itself a bot. */
  #called(text: string): Software | null {
    const product = FIRST_PRODUCT.exec(text)?.[1]
    const first = product === undefined ? undefined : this.#names.get(plainName(product))
    if (first !== undefined) return first
    for (const [word] of text.matchAll(PRODUCTS)) {
      const named = this.#names.get(plainName(word))
      if (named?.kind === 'agent' && BOT_WORD.test(word)) return named
    }
    return null
  }

  #walk(text: string, found: (pattern: Pattern, at: number) => void): void {
    for (let at = 0, hash = 0, start = NOT_IN_WORD; at <= text.length; at++) {
      if (isWordAt(text, at)) {
        if (start === NOT_IN_WORD) start = at
        hash = hashWith(hash, text.charCodeAt(at))
        continue
      }
      if (start === NOT_IN_WORD) continue
      for (const pattern of this.#patterns.get(hash) ?? NO_PATTERNS)
        if (at - start === pattern.wordLength && isHere(pattern, text, start))
          found(pattern, start - pattern.lead)
      hash = 0
      start = NOT_IN_WORD
    }
  }
}

/**
 * Of each kind, keeps the Software with the lowest `givesWay`, then the first named, then the longest match
 * at the same position.
 */
class Best {
  agent: Software | null = null
  tool: Software | null = null
  browser: Software | null = null
  readonly #places = { agent: NOWHERE, tool: NOWHERE, browser: NOWHERE }

  consider({ software, text }: Pattern, at: number): void {
    const { kind, givesWay: rank } = software
    const place = this.#places[kind]
    const isBetter =
      rank < place.rank ||
      (rank === place.rank && (at < place.at || (at === place.at && text.length > place.length)))
    if (!isBetter) return
    this.#places[kind] = { at, length: text.length, rank }
    this[kind] = software
  }
}

function isHere({ text, lead, endsWord, isWhole }: Pattern, userAgent: string, wordAt: number): boolean {
  const at = wordAt - lead
  if (at < 0 || !userAgent.startsWith(text, at)) return false
  if (isWhole) return at === 0 && userAgent.length === text.length
  return !(endsWord && isWordAt(userAgent, at + text.length))
}

function hashOf(word: string): number {
  let hash = 0
  for (let at = 0; at < word.length; at++) hash = hashWith(hash, word.charCodeAt(at))
  return hash
}

/** 30 bits, which fit into a small integer. */
function hashWith(hash: number, code: number): number {
  return (Math.imul(hash, 31) + code) & 0x3fffffff
}

function isWordAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39)
}

/** All browsers of iOS, and all in-app browsers, use the WebKit of the system. */
function engineOf(software: Software, platform: Platform | null): Engine | null {
  return platform === 'ios' && software.engine !== 'other' ? 'webkit' : software.engine
}

function versionOf(text: string, engine: Engine): number {
  const digits = VERSIONS[engine]?.exec(text)?.[1] ?? (engine === 'webkit' ? IOS.exec(text)?.[1] : undefined)
  return digits === undefined ? 0 : Number(digits)
}

function isOfApple(platform: Platform | null): boolean {
  return platform === 'mac' || platform === 'ios'
}

function platformOf(text: string): Platform | null {
  for (const [word, platform] of PLATFORMS) if (text.includes(word)) return platform
  return null
}

function isEmbedded(text: string, engine: Engine | null, platform: Platform | null): boolean {
  if (/qtwebengine|; wv\)/.test(text)) return true
  // Of WebKit's browsers only Safari names its version so.
  return engine === 'webkit' && (!isOfApple(platform) || !VERSIONS.webkit!.test(text))
}

const NO_CLAIM: Claim = {
  number: 0,
  software: null,
  kind: 'none',
  called: null,
  engine: null,
  version: 0,
  platform: null,
  isMobile: false,
  isHeadless: false,
  isEmbedded: false,
  hasForeignTls: false,
  endsAtTls12: false,
}
const OLD_IE = /\bmsie (?:[1-9]|10)\b(?!.*trident\/[7-9])/
const NOWHERE = { at: Number.POSITIVE_INFINITY, length: 0, rank: Number.POSITIVE_INFINITY }
const NOT_IN_WORD = -1
const NO_PATTERNS: readonly Pattern[] = []
const WORD = /[a-z0-9]+/
/** The first product, up to its version. For a scoped package, scope and name. */
const FIRST_PRODUCT = /^((?:@[^\s/();,]+\/)?[^\s/();,]+)(?:\/|$)/
/** Words with a version, or at the end of a part. */
const PRODUCTS = /(?<![a-z0-9._-])[a-z][a-z0-9._-]{0,63}(?=[/;)]|$)/g
const MOBILE = /\bmobile\b|android|iphone|ipad/
const IOS = /\b(?:iphone os|cpu os) (\d{1,2})_/
const VERSIONS: Readonly<Partial<Record<Engine, RegExp>>> = {
  blink: /\b(?:headless)?(?:chrome|chromium)\/(\d{1,4})/,
  gecko: /\b(?:firefox|fxios)\/(\d{1,4})/,
  webkit: /\bversion\/(\d{1,4})/,
}
const PLATFORMS: readonly (readonly [string, Platform])[] = [
  ['windows', 'windows'],
  ['android', 'android'],
  ['iphone', 'ios'],
  ['ipad', 'ios'],
  ['mac os x', 'mac'],
  ['cros ', 'chromeos'],
  ['linux', 'linux'],
]
/** No known User-Agent is half as long. */
const LENGTH_READ_MAX = 1024
/** Longer ones are parsed each time, so that clients cannot fill the memory with them. */
const REMEMBERED_LENGTH_MAX = 512
/** In each of two generations. */
const CLAIMS_MAX = 4096
const SLICE = 128
