import { REQUEST_KIND } from '../../src/classify/campaign/seen-request.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { seen } from '../contract/seen.ts'

export const CRAWLED_MS = Date.UTC(2026, 10, 20, 15, 42)
export const CHROME = {
  host: 'shop.test',
  program: 4_000_000_000,
  headerOrder: 17,
  software: 'chrome',
  userAgent: 'Mozilla/5.0 … Chrome/156.0.0.0 550e8400-e29b-41d4-a716-446655440000',
  stable: 'gs1-t13d1514h2-8daaf6152771-de4a06bb82e3',
  http2: '1:65536',
  ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1',
}

/** The pages that a crawler requests from 200 addresses, ten a second. */
export function crawled(count: number, fromMs = CRAWLED_MS, first = 0): readonly Sighting[] {
  return Array.from({ length: count }, (_, i) =>
    seen(first + i, {
      ...CHROME,
      seenAtMs: fromMs + i * 100,
      address: `198.51.${100 + (i % 2)}.${i % 200}`,
      path: `/item/${i}`,
      requestKind: REQUEST_KIND.page,
      target: i,
    }),
  )
}
