import { mixed } from '../../wire/network-hash.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import { REQUEST_KIND } from '../campaign/seen-request.ts'
import { HEADER } from '../known/index/header-index.ts'
import type { AskedFor } from './asked.ts'
import type { Reading } from './reading.ts'
import { hashOf } from './tally.ts'

/** What a request shows of a campaign. It is reused for all requests. See SeenRequest. */
export class RequestSigns {
  kind: number = REQUEST_KIND.other
  program = 0
  order = 0
  target = 0

  clear(): void {
    this.kind = REQUEST_KIND.other
    this.program = 0
    this.order = 0
    this.target = 0
  }

  /** `program`: of the claimed browser on this connection. */
  read(head: RequestHead, reading: Reading, asked: AskedFor, program: number): void {
    this.clear()
    // A browser asks for the icon itself, also when a crawler drives it that loads no parts.
    if (head.target === ICON) return
    if (asked === 'part' || asked === 'aside') this.kind = REQUEST_KIND.part
    else if (asked === 'page') this.kind = isFollowed(reading) ? REQUEST_KIND.followed : REQUEST_KIND.page
    else return
    this.program = program
    if (this.kind === REQUEST_KIND.part) return
    this.order = orderHash(reading)
    this.target = hashOf(head.target, head.target.length) >>> 0
  }
}

/** Whether another page of the site led to it. A browser that sends no Sec-Fetch-Site sends a Referer. */
function isFollowed({ fetchSite, referer }: Reading): boolean {
  if (fetchSite === null) return referer !== null
  return fetchSite === 'same-origin' || fetchSite === 'same-site'
}

/** The order of the headers, without those that depend on the page and not on the browser. */
function orderHash({ order, orderLength, sent, hasCapitals }: Reading): number {
  let hash = hasCapitals ? 1 : 2
  for (let i = 0; i < orderLength; i++) {
    const code = order[i]!
    if ((OF_PAGE & (1 << code)) === 0) hash = Math.imul(hash ^ code, 0x01000193)
  }
  // Without cookies, the cache of the browser is empty as well.
  return mixed((sent & (1 << HEADER.cookie)) === 0 ? hash : ~hash)
}

const ICON = '/favicon.ico'
const OF_PAGE =
  (1 << HEADER.cookie) |
  (1 << HEADER.referer) |
  (1 << HEADER['cache-control']) |
  (1 << HEADER.pragma) |
  (1 << HEADER['sec-fetch-user'])
