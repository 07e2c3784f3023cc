"""Admin clients in Python put to work on ACLs: see ../acls.test.ts for the arguments."""
import json
import sys

library, servers, token, command = sys.argv[1:]


def kafka_python():
    from kafka.admin import (
        ACL,
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        KafkaAdminClient,
        ResourcePattern,
        ResourcePatternFilter,
        ResourceType,
    )

    admin = KafkaAdminClient(
        bootstrap_servers=servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="operator",
        sasl_plain_password=token,
    )
    pattern = (ResourceType.TOPIC, "shop.", ACLResourcePatternType.PREFIXED)
    allow = ACLPermissionType.ALLOW

    def make(operation, permission=allow):
        return ACL("Role:writer", "*", operation, permission, ResourcePattern(*pattern))

    every = ACLFilter(
        "Role:writer", None, ACLOperation.ANY, ACLPermissionType.ANY, ResourcePatternFilter(*pattern)
    )
    if command == "create":
        result = admin.create_acls([make(ACLOperation.WRITE)])
        return len(result["succeeded"])
    if command == "refused":
        result = admin.create_acls([make(ACLOperation.READ, ACLPermissionType.DENY)])
        return "refused" if len(result["failed"]) == 1 else "accepted"
    if command == "list":
        acls, _error = admin.describe_acls(every)
        return [f"{acl.principal} {acl.resource_pattern.resource_name}" for acl in acls]
    return len(admin.delete_acls([every]))


def confluent():
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    admin = AdminClient(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "operator",
            "sasl.password": token,
        }
    )
    pattern = (ResourceType.TOPIC, "shop.", ResourcePatternType.PREFIXED, "Role:writer")
    every = AclBindingFilter(*pattern, None, AclOperation.ANY, AclPermissionType.ANY)
    if command == "create":
        acl = AclBinding(*pattern, "*", AclOperation.WRITE, AclPermissionType.ALLOW)
        for future in admin.create_acls([acl]).values():
            future.result(20)
        return 1
    if command == "refused":
        acl = AclBinding(*pattern, "*", AclOperation.READ, AclPermissionType.DENY)
        try:
            for future in admin.create_acls([acl]).values():
                future.result(20)
        except KafkaException:
            return "refused"
        return "accepted"
    if command == "list":
        return [f"{acl.principal} {acl.name}" for acl in admin.describe_acls(every).result(20)]
    return [len(future.result(20)) for future in admin.delete_acls([every]).values()]


print(json.dumps(kafka_python() if library == "kafka-python" else confluent()))
