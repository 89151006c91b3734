import type { RequestHead } from '../../wire/request-head.ts'
import { HEADER } from '../known/index/header-index.ts'
import type { Reading } from './reading.ts'

/** What a request is for, as far as classification distinguishes it. */
export type AskedFor =
  | 'robots'
  | 'sitemap'
  /** A page that people read. */
  | 'page'
  /** A HEAD request: does the page exist? */
  | 'check'
  /** What a browser loads for a page: images, frames. */
  | 'part'
  /** What the scripts of a page request. */
  | 'aside'
  /** Uploads, API calls, and prefetches. */
  | 'other'

/** `isBrowser`: the client claims to be a browser. Browsers accept HTML when they load a page. */
export function askedFor({ method, target }: RequestHead, reading: Reading, isBrowser: boolean): AskedFor {
  if (method !== 'GET' && method !== 'HEAD') return 'other'
  if (target.startsWith('/robots.txt') && (target.length === ROBOTS_LENGTH || target[ROBOTS_LENGTH] === '?'))
    return 'robots'
  const query = target.indexOf('?')
  const path = query === -1 ? target : target.slice(0, query)
  if (path.includes('sitemap') && isSitemap(path)) return 'sitemap'
  if (method === 'HEAD') return 'check'
  const { fetchDest } = reading
  if (fetchDest === null ? PART_NAME.test(path) : fetchDest !== 'document' && fetchDest !== 'empty')
    return 'part'
  if (fetchDest === 'empty' || reading.isUpgrade) return 'aside'
  if ((reading.sent & NOT_READ) !== 0) return 'other'
  const { accept } = reading
  if (accept?.includes('html') === true) return 'page'
  if (isBrowser) return 'aside'
  return accept === null || accept.startsWith('*/*') ? 'page' : 'other'
}

/** Matches sitemap files for crawlers, but not a page for people that is called "sitemap". */
function isSitemap(path: string): boolean {
  const from = path.lastIndexOf('/')
  return path.length - from <= SITEMAP_LENGTH_MAX && SITEMAP.test(path.slice(from))
}

const ROBOTS_LENGTH = '/robots.txt'.length
const SITEMAP = /sitemap[^.]*\.(?:xml|txt)(?:\.gz)?$/
const SITEMAP_LENGTH_MAX = 100
const PART_NAME = /\.(?:css|js|mjs|png|jpe?g|gif|svg|webp|avif|ico|woff2?)$/
/** A client with a key is a program that calls an API, and a prefetched page may never be read. */
const NOT_READ =
  (1 << HEADER.authorization) |
  (1 << HEADER['x-api-key']) |
  (1 << HEADER['api-key']) |
  (1 << HEADER.purpose) |
  (1 << HEADER['sec-purpose'])
