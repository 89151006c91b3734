export interface PaymentTables {
  payments: PaymentTable
}

/** The ledger: one row for each payment. */
export interface PaymentTable {
  id: string
  /** Unique: whatever makes a payment one payment. */
  identity: string
  scheme: string
  /** One of PAYMENT_STATES. */
  state: string
  app: string
  rule: string
  /** Whose spending counts together: the agent, or else the payer. */
  account: string
  agent: string | null
  /** The thumbprint of the key that signed the request. */
  key: string | null
  /** The address that paid. */
  payer: string | null
  host: string
  path: string
  /** In millionths of the currency. */
  amount: number
  currency: string
  network: string | null
  asset: string | null
  transaction_id: string | null
  /** Why it was refused. */
  why: string | null
  /** JSON: a list. */
  purposes: string
  license: string | null
  decision_id: string
  created_at_ms: number
  /** Since 1970. */
  day: number
  /** A request is using the payment until then. */
  lease_until_ms: number
  settled_at_ms: number | null
  served_at_ms: number | null
  /** 0: no pass. */
  pass_until_ms: number
  refunded_at_ms: number | null
  refund_note: string | null
}
