import { csv, type CsvCell } from '../../shared/csv.ts'

interface Props {
  /** The file name, without its extension. */
  readonly name: string
  readonly columns: readonly string[]
  rows(): readonly (readonly CsvCell[])[] | Promise<readonly (readonly CsvCell[])[]>
  json(): unknown
}

/** Downloads the visible data as a file. */
export function Download({ name, columns, rows, json }: Props) {
  const asCsv = async () =>
    save(`${name}.csv`, new Blob([csv([columns, ...(await rows())])], { type: 'text/csv' }))
  const asJson = async () =>
    save(`${name}.json`, new Blob([JSON.stringify(await json(), null, 2)], { type: 'application/json' }))
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

/** Gives the user a file. */
export function save(name: string, file: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
