/**
 * Names an obligation in the memory of a host: by the id of its entry and the tenant that owns that id. The
 * event that ends a plan has its sender's id, and two tenants may use the same one.
 */
export function obligationKey(tenant: string, id: string): string {
  return JSON.stringify([tenant, id]);
}
