import { type Cell, csv } from './export.ts'

interface Props {
  /** The file name, without its extension. */
  readonly name: string
  readonly columns: readonly string[]
  rows(): readonly (readonly Cell[])[] | Promise<readonly (readonly Cell[])[]>
  json(): unknown
}

/** Downloads the visible data as a file. */
export function Download({ name, columns, rows, json }: Props) {
  const asCsv = async () => save(`${name}.csv`, 'text/csv', csv(columns, await rows()))
  const asJson = async () => save(`${name}.json`, 'application/json', JSON.stringify(await json(), null, 2))
  return (
    <span class="group">
      <button type="button" onClick={() => void asCsv()}>
        CSV
      </button>
      <button type="button" onClick={() => void asJson()}>
        JSON
      </button>
    </span>
  )
}

function save(name: string, type: string, text: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
