import type { RequestHead } from '../wire/request-head.ts'
import { EvidenceSet } from './evidence.ts'
import { HEADER } from './header-index.ts'
import type { Reading } from './reading.ts'
import type { Software } from './software.ts'

/**
 * What a client has done on one connection so far: who it has said to be once, it is for all that follows, and some things
 * only show over several requests.
 */
export class Conduct {
  readonly marks = new EvidenceSet()
  /** An agent that was named before. */
  agent: Software | null = null
  #requests = 0
  #pages = 0
  #parts = 0
  #lastPage = ''

  /** Called for each request, in order. */
  note(head: RequestHead, reading: Reading): void {
    const { target } = head
    if (isRobots(target) && this.#requests === 0) this.marks.add('robots-first')
    this.#requests++
    if (head.method !== 'GET') return
    if (isPart(target, reading)) this.#parts++
    else if (target !== this.#lastPage && !isRobots(target)) {
      this.#pages++
      this.#lastPage = target
    }
    if (this.#parts > 0) {
      this.marks.add('loads-parts')
      this.marks.remove('crawls')
    }
    if (this.#pages >= CRAWL_PAGES_MIN && this.#parts === 0 && reading.has(HEADER.referer))
      this.marks.add('crawls')
  }
}

function isRobots(target: string): boolean {
  return target === '/robots.txt' || target.startsWith('/robots.txt?')
}

/** What a browser asks for on behalf of a page. */
function isPart(target: string, { fetchDest }: Reading): boolean {
  if (fetchDest !== null) return PART_DESTINATIONS.has(fetchDest)
  const end = target.indexOf('?')
  return PART_NAME.test(end === -1 ? target : target.slice(0, end))
}

const CRAWL_PAGES_MIN = 2
const PART_DESTINATIONS: ReadonlySet<string> = new Set([
  'script',
  'style',
  'image',
  'font',
  'track',
  'manifest',
])
const PART_NAME = /\.(?:css|js|mjs|png|jpe?g|gif|svg|webp|avif|ico|woff2?)$/
