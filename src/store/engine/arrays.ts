import { CompiledQuery, type RawBuilder, sql } from 'kysely'
import { parts } from './bulk.ts'
import { kindOf, type Queries } from './database.ts'

// Many values in few parameters. To compile, send and bind a parameter for each value takes longer than to store it.

type Value = string | number | null
type TypeName = 'text' | 'bigint' | 'double precision' | 'uuid'
/** The columns of rows, each with its type in PostgreSQL. */
type Columns<Row> = Readonly<Record<keyof Row & string, TypeName>>

/** Whether a column has one of these values. */
export function isOneOf(
  column: string,
  values: readonly (string | number)[],
  queries: Queries,
  type: TypeName = 'text',
): RawBuilder<boolean> {
  return kindOf(queries) === 'postgres'
    ? sql`${sql.ref(column)} = any(${arrayText(values)}::${sql.raw(type)}[])`
    : sql`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`
}

/** `conflict`: the clause that follows, as SQL. */
export async function insertRows<Row extends object>(
  table: string,
  rows: readonly Row[],
  columns: Columns<Row>,
  conflict: string,
  queries: Queries,
): Promise<void> {
  if (rows.length === 0) return
  const names = Object.keys(columns) as (keyof Row & string)[]
  const into = `insert into ${table} (${names.join(', ')})`
  if (kindOf(queries) === 'postgres') {
    await sql`${sql.raw(into)} select * from ${unnested(rows, columns)} ${sql.raw(conflict)}`.execute(queries)
    return
  }
  const places = `(${names.map(() => '?').join(', ')})`
  for (const part of parts(rows)) {
    // As text, which is the same each time.
    const text = `${into} values ${part.map(() => places).join(', ')} ${conflict}`
    const values = part.flatMap((row) => names.map((name) => row[name]))
    await queries.executeQuery(CompiledQuery.raw(text, values))
  }
}

/** PostgreSQL: the rows as a table, with one parameter for each column. */
export function unnested<Row extends object>(
  rows: readonly Row[],
  columns: Partial<Columns<Row>>,
): RawBuilder<unknown> {
  const arrays = Object.entries<TypeName>(columns as Columns<Row>).map(([name, type]) => {
    const values = rows.map((row) => row[name as keyof Row] as Value)
    return sql`${arrayText(values)}::${sql.raw(type)}[]`
  })
  return sql`unnest(${sql.join(arrays)})`
}

/** An array as PostgreSQL writes it. The driver escapes each value, whether it has to be or not. */
function arrayText(values: readonly Value[]): string {
  let text = ''
  for (const value of values) text += `,${typeof value === 'string' ? quoted(value) : value}`
  return `{${text.slice(1)}}`
}

function quoted(text: string): string {
  return SPECIAL.test(text) ? `"${text.replace(/["\\]/g, '\\$&')}"` : `"${text}"`
}

const SPECIAL = /["\\]/
