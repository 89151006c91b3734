import { addressOf } from '../../api/address.ts'
import { send } from '../../api/ask.ts'
import { OPERATIONS } from '../../api/operations.ts'
import { unreachable } from '../../api/problem.ts'
import { useDoing } from '../../api/use-doing.ts'
import { save } from '../../parts/download.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import type { RequestQuery } from './request-list.ts'

/** Saves the requests that fit the filters as a file. */
export function ExportButtons({ query }: { readonly query: RequestQuery }) {
  const doing = useDoing()
  const get = (format: 'csv' | 'ndjson' | 'parquet') =>
    doing.run(async () => {
      const address = addressOf(OPERATIONS.exportRequests[1], {}, { ...query, format })
      const response = await send(address, {})
      const file = await response.blob().catch(() => {
        throw unreachable()
      })
      save(`requests.${format}`, file)
    })
  return (
    <>
      <span class="group">
        <button type="button" disabled={doing.isDoing} onClick={() => void get('csv')}>
          CSV
        </button>
        <button type="button" disabled={doing.isDoing} onClick={() => void get('ndjson')}>
          NDJSON
        </button>
        <button type="button" disabled={doing.isDoing} onClick={() => void get('parquet')}>
          Parquet
        </button>
      </span>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
    </>
  )
}
