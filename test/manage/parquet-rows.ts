import { parquetReadObjects } from 'hyparquet'

/** The rows of a Parquet file. */
export async function rowsOf(file: Uint8Array): Promise<readonly Record<string, unknown>[]> {
  const bytes = Uint8Array.from(file).buffer
  return parquetReadObjects({ file: bytes, utf8: true })
}
