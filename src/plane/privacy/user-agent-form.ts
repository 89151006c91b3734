import { isRandom } from './shown-path.ts'

/**
 * The programs in a User-Agent with their main versions: `Mozilla/5 Chrome/126 Safari/537`, `GPTBot/1`. Systems,
 * devices, languages, builds and contacts are left out. These tell one person from another; the programs do not.
 */
export function productsIn(userAgent: string): string {
  const products = new Set<string>()
  for (const [, name, version] of userAgent.slice(0, READ_MAX).matchAll(PRODUCT)) {
    if (isRandom(name!)) continue
    products.add(`${name}/${version}`)
    if (products.size === PRODUCTS_MAX) break
  }
  if (products.size > 0) return [...products].join(' ')
  const [name = ''] = NAME.exec(userAgent) ?? []
  return isRandom(name) ? '' : name
}

/** Anywhere: crawlers name themselves in a comment. */
const PRODUCT = /(?<![\w./-])([A-Za-z][A-Za-z0-9_.-]{1,39})\/v?(\d{1,4})(?!\d)/g
/** A User-Agent without a version. */
const NAME = /^[A-Za-z][A-Za-z_.-]{1,39}/
const PRODUCTS_MAX = 8
const READ_MAX = 1_024
