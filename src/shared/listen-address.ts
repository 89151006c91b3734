/** Where a server listens. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}
