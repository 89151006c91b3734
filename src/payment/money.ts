/** Prices are decimal text with at most six places, as in `0.01`. They are summed in millionths, which are exact. */
export function isPrice(text: string): boolean {
  return PRICE.test(text) && millionthsOf(text) > 0
}

export function millionthsOf(price: string): number {
  const [whole, places = ''] = price.split('.') as [string, string?]
  return Number(whole) * MILLION + Number(places.padEnd(PLACES, '0'))
}

export function priceOf(millionths: number): string {
  const places = String(millionths % MILLION).padStart(PLACES, '0')
  return `${Math.floor(millionths / MILLION)}.${places.replace(/0{1,4}$/, '')}`
}

/** The price in the smallest unit of an asset; `null`: the asset has no unit that small. */
export function atomicAmount(price: string, decimals: number): string | null {
  const [whole, places = ''] = price.split('.') as [string, string?]
  const kept = places.replace(/(?<!0)0+$/, '')
  if (kept.length > decimals) return null
  return (whole + kept.padEnd(decimals, '0')).replace(/^0+(?=\d)/, '')
}

const PLACES = 6
const MILLION = 1_000_000
const PRICE = /^\d{1,9}(?:\.\d{1,6})?$/
