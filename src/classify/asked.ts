import type { RequestHead } from '../wire/request-head.ts'
import { HEADER } from './header-index.ts'
import type { Reading } from './reading.ts'

/** What a request is for, as far as traffic is told apart by it. */
export type Asked =
  | 'robots'
  | 'sitemap'
  /** What people read. */
  | 'page'
  /** A HEAD: is there such a page? */
  | 'check'
  /** What a browser loads on behalf of a page. */
  | 'part'
  /** What a page in a browser asks for by itself: frames, media, its scripts' requests. */
  | 'aside'
  /** What is sent, what programs ask of programs, and what is fetched before anybody wants it. */
  | 'other'

export function askedFor({ method, target }: RequestHead, reading: Reading): Asked {
  if (method !== 'GET' && method !== 'HEAD') return 'other'
  if (target.startsWith('/robots.txt') && (target.length === ROBOTS_LENGTH || target[ROBOTS_LENGTH] === '?'))
    return 'robots'
  const query = target.indexOf('?')
  const path = query === -1 ? target : target.slice(0, query)
  if (path.includes('sitemap') && isSitemap(path)) return 'sitemap'
  if (method === 'HEAD') return 'check'
  const { fetchDest } = reading
  if (fetchDest === null ? PART_NAME.test(path) : PART_DESTINATIONS.has(fetchDest)) return 'part'
  if (fetchDest !== null && fetchDest !== 'document') return fetchDest === 'empty' ? 'aside' : 'part'
  return isToBeRead(reading) ? 'page' : 'other'
}

/** What ends like a list for crawlers; a page that people call their sitemap does not. */
function isSitemap(path: string): boolean {
  const from = path.lastIndexOf('/')
  return path.length - from <= SITEMAP_LENGTH_MAX && SITEMAP.test(path.slice(from))
}

/** Who has a key, or asks for JSON, is a program that talks to an interface. */
function isToBeRead(reading: Reading): boolean {
  const { accept } = reading
  if (accept !== null && !accept.startsWith('*/*') && !accept.includes('html')) return false
  return (reading.sent & NOT_READ) === 0
}

const ROBOTS_LENGTH = '/robots.txt'.length
const SITEMAP = /sitemap[^.]*\.(?:xml|txt)(?:\.gz)?$/
const SITEMAP_LENGTH_MAX = 100
const PART_DESTINATIONS: ReadonlySet<string> = new Set([
  'script',
  'style',
  'image',
  'font',
  'track',
  'manifest',
])
const PART_NAME = /\.(?:css|js|mjs|png|jpe?g|gif|svg|webp|avif|ico|woff2?)$/
const NOT_READ =
  (1 << HEADER.authorization) |
  (1 << HEADER['x-api-key']) |
  (1 << HEADER['api-key']) |
  (1 << HEADER.purpose) |
  (1 << HEADER['sec-purpose'])
