import type { RequestHead } from '../../wire/request-head.ts'
import { HEADER } from '../known/index/header-index.ts'
import type { Reading } from './reading.ts'

/** What a request is for, as far as traffic is told apart by it. */
export type Asked =
  | 'robots'
  | 'sitemap'
  /** What people read. */
  | 'page'
  /** A HEAD: is there such a page? */
  | 'check'
  /** What a browser loads on behalf of a page: images, frames. */
  | 'part'
  /** What the scripts of a page ask for. */
  | 'aside'
  /** What is sent, what programs ask of programs, and what is fetched before anybody wants it. */
  | 'other'

/** `isBrowser`: it says to be one, and those ask for HTML where a page is wanted. */
export function askedFor({ method, target }: RequestHead, reading: Reading, isBrowser: boolean): Asked {
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

/** What ends like a list for crawlers; a page that people call their sitemap does not. */
function isSitemap(path: string): boolean {
  const from = path.lastIndexOf('/')
  return path.length - from <= SITEMAP_LENGTH_MAX && SITEMAP.test(path.slice(from))
}

const ROBOTS_LENGTH = '/robots.txt'.length
const SITEMAP = /sitemap[^.]*\.(?:xml|txt)(?:\.gz)?$/
const SITEMAP_LENGTH_MAX = 100
const PART_NAME = /\.(?:css|js|mjs|png|jpe?g|gif|svg|webp|avif|ico|woff2?)$/
/** Who has a key is a program that talks to an interface, and what is fetched ahead may never be looked at. */
const NOT_READ =
  (1 << HEADER.authorization) |
  (1 << HEADER['x-api-key']) |
  (1 << HEADER['api-key']) |
  (1 << HEADER.purpose) |
  (1 << HEADER['sec-purpose'])
