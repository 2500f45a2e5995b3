"""Values of the operator's chart that the tests render and install: one set for each thing that a
person switches."""

from __future__ import annotations

from typing import Any

DIGEST = "sha256:" + "0" * 64
MONITORING: dict[str, Any] = {
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboard": {"enabled": True},
}
BY_SERVICE: dict[str, Any] = {
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True, "thresholds": {"queueSeconds": 60}},
}
CLOSED: dict[str, Any] = {
    "enabled": True,
    "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    "egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}, {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
}
PLACED: dict[str, Any] = {
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "system-cluster-critical",
    "podAnnotations": {"example.com/team": "lake"},
    "podLabels": {"team": "lake"},
}

JOBS: dict[str, Any] = {
    "pods": {
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "caBundle": {"name": "authorities"},
        "memory": "3Gi",
        "light": {"cpu": "50m", "memory": "384Mi"},
        "allowedPriorityClasses": ["low"],
    },
    "podsByNamespace": {
        "lake-a": {
            "maxAttempts": 2,
            "memory": "6Gi",
            "volumes": [{"claim": "lake", "path": "/data"}],
            "allowedServiceAccounts": ["reader"],
        }
    },
    "maxAttempts": 10,
}

# The namespaces `lake-a` and `lake-b` are there wherever these are installed.
MATRIX: dict[str, dict[str, Any]] = {
    "default": {},
    "role-only": {"watchNamespaces": ["lake-a"]},
    "two-namespaces": {"watchNamespaces": ["lake-a", "lake-b"]},
    "purge": {"watchNamespaces": ["lake-a"], "rbac": {"purge": True}},
    "own-namespace": {"watchNamespaces": ["hudi-operator"]},
    "accounts-elsewhere": {"jobs": {"namespaces": ["lake-b"]}},
    "highly-available": {"replicaCount": 3, "podDisruptionBudget": {"maxUnavailable": "50%"}},
    "digests": {"image": {"operator": {"digest": DIGEST}, "spark": {"tag": "1.2", "digest": DIGEST}}},
    "private-registry": {
        "image": {"operator": {"repository": "registry.example:5000/team/hudi-operator", "tag": "1.2"},
                  "pullPolicy": "Always", "pullSecrets": ["registry", "mirror"]},
    },
    "monitored": {"metrics": MONITORING | {"port": 9090}},
    "monitored-by-service": {"metrics": BY_SERVICE},
    "closed-network": {"networkPolicy": CLOSED},
    "closed-jobs": {"jobs": {"networkPolicy": {"egress": CLOSED["egress"]}}, "watchNamespaces": ["lake-a"]},
    "spark-operators": {
        "launchers": {"sparkOperator": {"enabled": True}, "apacheSparkOperator": {"enabled": True}},
        "watchNamespaces": ["lake-a"],
    },
    "known-secrets": {"rbac": {"secretNames": ["s3", "gcs"]}, "watchNamespaces": ["lake-a"]},
    "own-accounts": {
        "rbac": {"create": False},
        "serviceAccount": {"create": False},
        "jobs": {"serviceAccount": {"create": False, "name": "default"}, "driverServiceAccount": {"create": False}},
        "watchNamespaces": ["lake-a"],
    },
    "identities": {
        "serviceAccount": {"name": "lake-keeper", "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/a"}},
        "jobs": {"serviceAccount": {"name": "writer", "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/b"}}},
        "watchNamespaces": ["lake-a"],
    },
    "placed": PLACED,
    "placed-jobs": {"jobs": JOBS, "watchNamespaces": ["lake-a"]},
    "renamed": {"fullnameOverride": "tables", "nameOverride": "lake"},
    "more": {"extraArgs": ["--workers=2"], "extraEnv": [{"name": "TZ", "value": "UTC"}], "workers": 8},
}  # fmt: skip
