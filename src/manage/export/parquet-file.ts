import type { SchemaElement } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { RequestColumn } from './request-columns.ts'
import type { RequestRow } from './request-row.ts'

/**
 * A Parquet file that is made piece by piece: Snappy, with statistics of each column. The same requests in the same pieces
 * give the same bytes.
 */
export class ParquetFile {
  readonly #columns: readonly RequestColumn[]
  readonly #bytes = new ByteWriter(BUFFER_BYTES)
  readonly #writer: ParquetWriter

  constructor(columns: readonly RequestColumn[]) {
    this.#columns = columns
    const schema = schemaOf(columns)
    this.#writer = new ParquetWriter({ writer: this.#bytes, schema, createdBy: 'gatehouse' })
  }

  /** The bytes so far. */
  get length(): number {
    return this.#bytes.offset
  }

  /** The bytes of a row group with these requests. */
  add(requests: readonly RequestRow[]): Buffer {
    if (requests.length === 0) return this.#taken()
    const columnData = this.#columns.map((column) => ({
      name: column.name,
      data: valuesOf(column, requests),
    }))
    void this.#writer.write({ columnData, rowGroupSize: requests.length })
    return this.#taken()
  }

  /** The bytes of its end, without which it cannot be read. */
  end(): Buffer {
    void this.#writer.finish()
    return this.#taken()
  }

  #taken(): Buffer {
    const taken = Buffer.from(this.#bytes.getBytes())
    this.#bytes.index = 0
    return taken
  }
}

function valuesOf(
  column: RequestColumn,
  requests: readonly RequestRow[],
): (string | number | bigint | null | readonly string[])[] {
  if (column.type !== 'time') return requests.map((request) => column.read(request))
  return requests.map((request) => BigInt(Date.parse(column.read(request))))
}

function schemaOf(columns: readonly RequestColumn[]): SchemaElement[] {
  return [{ name: 'requests', num_children: columns.length }, ...columns.flatMap(elementsOf)]
}

function elementsOf({ name, type, isRequired }: RequestColumn): SchemaElement[] {
  const repetition_type = isRequired ? 'REQUIRED' : 'OPTIONAL'
  switch (type) {
    case 'text':
      return [{ name, repetition_type, type: 'BYTE_ARRAY', converted_type: 'UTF8' }]
    case 'number':
      return [{ name, repetition_type, type: 'DOUBLE' }]
    case 'time':
      return [{ name, repetition_type, type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' }]
    case 'texts':
      return [
        { name, repetition_type, num_children: 1, converted_type: 'LIST' },
        { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
        { name: 'element', repetition_type: 'REQUIRED', type: 'BYTE_ARRAY', converted_type: 'UTF8' },
      ]
  }
}

const BUFFER_BYTES = 65_536
